"""A copy of all keys under a prefix that follows etcd and outlives its outages."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import structlog

from services.chassis import mirror_state
from services.chassis.backoff import Backoff
from services.chassis.disk_snapshot import DiskSnapshot
from services.chassis.entries import Batch, Listing, News
from services.chassis.errors import ServiceError
from services.chassis.mirror_state import Changes, MirrorState
from services.chassis.registry import Registry

Subscriber = Callable[[MirrorState, Changes], None]

_SAVE_PAUSE_S = 1.0
_STEADY_S = 2.0

log = structlog.get_logger()


class Mirror:
    """Keeps ``state`` equal to etcd, replaced whole by one assignment at each change.

    Through an outage the last state stays, with ``connected`` false and its age
    growing. Afterwards the whole list is read again, so that nothing that happened
    in between is missed, deletions included.
    """

    def __init__(self, registry: Registry, prefix: str, disk_path: Path | None = None) -> None:
        self.state = MirrorState()
        self._registry = registry
        self._prefix = prefix
        self._disk = DiskSnapshot(disk_path, prefix) if disk_path else None
        self._subscribers: list[Subscriber] = []
        self._ready = asyncio.Event()
        self._moved = asyncio.Event()
        self._unsaved = asyncio.Event()
        self._warned = False

    def subscribe(self, subscriber: Subscriber) -> None:
        """Calls ``subscriber`` on the event loop with each new state and what changed.

        One call for each revision that touches the prefix and for each reading of
        the whole list, in order; one at once if there is a state already. It may
        subscribe others or start other mirrors, and its errors are logged, not passed on.
        """
        self._subscribers.append(subscriber)
        if self._ready.is_set():
            entries = tuple(self.state.entries.values())
            self._tell(subscriber, Changes(put=entries, relisted=True))

    async def ready(self) -> None:
        """Returns once there is a state, from etcd or, if that is down, from the disk."""
        await self._ready.wait()

    async def reached(self, revision: int) -> None:
        """Returns once everything up to ``revision`` is in ``state``."""
        while self.state.revision < revision:
            await self._moved.wait()

    async def run(self) -> None:
        """Follows etcd for ever; belongs into the caller's TaskGroup."""
        async with asyncio.TaskGroup() as tasks:
            if self._disk:
                tasks.create_task(self._save_changes(self._disk))
            tasks.create_task(self._follow())

    async def _follow(self) -> None:
        backoff = Backoff()
        while True:
            started = time.monotonic()
            try:
                async with aclosing(self._registry.follow(self._prefix)) as news:
                    async for item in news:
                        self._apply(item)
            except ServiceError as error:
                self._interrupt(error.message)
            except Exception:  # whatever broke, reading the list again heals it
                log.exception("mirror_failed", prefix=self._prefix)
                self._interrupt("failed")
            await asyncio.sleep(backoff.next(time.monotonic() - started))

    def _apply(self, news: News) -> None:
        now = time.monotonic()
        if isinstance(news, Listing):
            self._note_listing(news)
            self._publish(*mirror_state.relist(self.state, news, now))
        elif isinstance(news, Batch):
            self._publish(*mirror_state.advance(self.state, news, now))
        else:
            self.state = mirror_state.pulse(self.state, now)
            self._note_pulse()

    def _publish(self, state: MirrorState, changes: Changes) -> None:
        self.state = state
        self._ready.set()
        if changes or changes.relisted:
            if not state.from_disk:
                self._unsaved.set()
            for subscriber in tuple(self._subscribers):
                self._tell(subscriber, changes)
        self._moved.set()
        self._moved = asyncio.Event()

    def _tell(self, subscriber: Subscriber, changes: Changes) -> None:
        try:
            subscriber(self.state, changes)
        except Exception:
            log.exception("mirror_subscriber_failed", prefix=self._prefix)

    def _note_listing(self, listing: Listing) -> None:
        if mirror_state.history_changed(self.state, listing):
            log.warning(
                "registry_history_changed",
                prefix=self._prefix,
                revision=listing.revision,
                previous_revision=self.state.revision,
            )

    def _note_pulse(self) -> None:
        """Says that an interruption is over once the link has held for a while."""
        if self._warned and self.state.fresh_at - self.state.listed_at > _STEADY_S:
            self._warned = False
            log.info("mirror_connected", prefix=self._prefix, revision=self.state.revision)

    def _interrupt(self, reason: str) -> None:
        """One warning for an outage, and one for a link that breaks again and again."""
        self.state = mirror_state.interrupted(self.state)
        if not self._warned:
            self._warned = True
            log.warning("mirror_interrupted", prefix=self._prefix, reason=reason)
            self._boot()

    def _boot(self) -> None:
        """Starts from the disk where there is no state yet."""
        saved = None if self._ready.is_set() or not self._disk else self._disk.load()
        if saved is None:
            return
        log.warning("mirror_booted_from_disk", prefix=self._prefix, revision=saved.revision)
        self._publish(*mirror_state.booted(saved))

    async def _save_changes(self, disk: DiskSnapshot) -> None:
        """Writes the newest state after changes, once each _SAVE_PAUSE_S and at the end."""
        try:
            while True:
                await self._unsaved.wait()
                self._unsaved.clear()
                await asyncio.to_thread(self._save, disk)
                await asyncio.sleep(_SAVE_PAUSE_S)
        finally:
            if self._unsaved.is_set():
                self._save(disk)

    def _save(self, disk: DiskSnapshot) -> None:
        state = self.state
        try:
            disk.save(Listing(state.revision, state.entries, state.cluster_id))
        except OSError as error:
            log.warning("disk_snapshot_not_saved", reason=str(error))
