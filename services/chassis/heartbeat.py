"""Keeps one key in the registry under one lease, whatever happens to either."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import structlog

from services.chassis.backoff import Backoff
from services.chassis.entries import Entry, TimeToLive
from services.chassis.errors import AlreadyExists, ServiceError
from services.chassis.ownership import Claim, Occupant, claim, is_alive, sight
from services.chassis.registry import Registry
from services.chassis.transaction import Delete, Put, Unchanged

ValueFactory = Callable[[int], bytes]

_BEATS_PER_TTL = 3
_OVER = TimeToLive(left_s=-1, granted_s=0)

log = structlog.get_logger()


class KeyTaken(AlreadyExists):
    """Another live process holds the key."""

    reason = "KEY_TAKEN"


class Heartbeat:
    """One key, one lease, renewed thrice in its life; belongs to one event loop.

    ``on_put`` is called after each write of the record.
    """

    def __init__(
        self,
        registry: Registry,
        key: str,
        value_of: ValueFactory,
        ttl_s: int,
        on_put: Callable[[], object],
    ) -> None:
        self._registry = registry
        self._key = key
        self._value_of = value_of
        self._ttl_s = ttl_s
        self._on_put = on_put
        self._lease = 0
        self._epoch = 0
        self._ours: set[int] = set()
        self._rivals: set[int] = set()
        self._lost = False
        self._was_free = False
        self._unreachable = False
        self._contested = False
        self._hurried = asyncio.Event()

    def hurry(self) -> None:
        """Beats at once, so that a changed record is there at once."""
        self._hurried.set()

    async def keep(self) -> None:
        """Claims the key, then beats for ever; raises KeyTaken if a live process has it."""
        backoff = Backoff()
        step = self._start
        while True:
            try:
                await step()
            except KeyTaken:
                raise
            except ServiceError as error:
                self._note_unreachable(error)
                await asyncio.sleep(backoff.next())
                continue
            step = self.beat
            backoff = Backoff()
            self._note_reachable()
            await self._rest(self._ttl_s / _BEATS_PER_TTL)

    async def _rest(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._hurried.wait()
        self._hurried.clear()

    async def _start(self) -> None:
        while not self._epoch:
            vacant = await self._wait_for_vacancy()
            await self._renew()
            await self._take(vacant)

    async def beat(self) -> None:
        """Renews the lease and looks after the key; puts back what is lost or out of date."""
        await self._renew()
        entry = await self._registry.get(self._key)
        if entry and entry.lease and self._was_free:
            self._rivals.add(entry.lease)
        decision = claim(entry, self._lease, self._ours, self._rivals)
        self._note_contest(decision is Claim.LEAVE)
        if decision is Claim.TAKE:
            await self._take(entry)
        elif entry and decision is Claim.HELD and entry.value != self._value_of(self._epoch):
            await self._put(entry, self._epoch)

    async def _renew(self) -> None:
        if self._lease and await self._registry.keep_alive(self._lease) <= 0:
            self._note_loss("lease_lost")
            self._was_free = True
            self._lease = 0
        if not self._lease:
            self._lease = await self._registry.grant(self._ttl_s)
            self._ours.add(self._lease)

    async def withdraw(self) -> None:
        """Ends the lease; also removes a record that lost its lease to a hand edit."""
        if not self._lease:
            return
        entry = await self._registry.get(self._key)
        if self._epoch and entry and entry.lease == 0:
            unchanged = Unchanged(self._key, entry.mod_revision)
            await self._registry.transact([unchanged], [Delete(self._key)])
        await self._registry.revoke(self._lease)
        self._lease = 0

    async def _take(self, entry: Entry | None) -> None:
        """Puts the record unless the key has changed since ``entry`` was read."""
        if self._epoch:
            self._note_loss("key_overwritten" if entry else "key_deleted")
        if entry:
            self._rivals |= {entry.lease} - {0}
        await self._put(entry, max(int(time.time() * 1000), self._epoch + 1))

    async def _put(self, entry: Entry | None, epoch: int) -> None:
        unchanged = Unchanged(self._key, entry.mod_revision if entry else 0)
        put = Put(self._key, self._value_of(epoch), self._lease)
        if (await self._registry.transact([unchanged], [put])).succeeded:
            self._epoch = epoch
            self._lost = self._was_free = False
            log.info("registered", key=self._key, lease=self._lease, epoch=epoch)
            self._on_put()

    async def _wait_for_vacancy(self) -> Entry | None:
        """The entry that may be replaced, None for an absent one.

        Lets a dead owner's lease run out; raises KeyTaken if the owner renews it.
        """
        occupant: Occupant | None = None
        while entry := await self._registry.get(self._key):
            life = await self._registry.time_to_live(entry.lease) if entry.lease else _OVER
            if life.left_s < 0 or entry.lease in self._ours:
                return entry
            now = time.monotonic()
            occupant = occupant or sight(entry.lease, life, now)
            if is_alive(occupant, entry.lease, life, now):
                raise KeyTaken(f"{self._key} belongs to a live process; choose another id")
            occupant = replace(occupant, left_s=life.left_s)
            await asyncio.sleep(min(0.5, self._ttl_s / 4))
        return None

    def _note_loss(self, cause: str) -> None:
        if not self._lost:
            log.warning("registration_lost", key=self._key, cause=cause)
        self._lost = True

    def _note_contest(self, contested: bool) -> None:
        if contested and not self._contested:
            log.error("registration_contested", key=self._key)
        self._contested = contested

    def _note_unreachable(self, error: ServiceError) -> None:
        if not self._unreachable:
            log.warning("registry_unreachable", key=self._key, reason=error.message)
        self._unreachable = True

    def _note_reachable(self) -> None:
        if self._unreachable:
            log.info("registry_reachable", key=self._key)
        self._unreachable = False
