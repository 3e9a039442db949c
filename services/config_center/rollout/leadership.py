"""One config center at a time moves the rollouts: a key under a lease says which."""

from __future__ import annotations

import asyncio

import structlog

from services.chassis import keys
from services.chassis.errors import ServiceError
from services.chassis.ids import process_id
from services.chassis.registry import Registry
from services.chassis.transaction import Put, Unchanged

TTL_S = 5

log = structlog.get_logger()


class Leadership:
    """Held by whoever creates the key first, as long as its lease lives."""

    def __init__(self, registry: Registry, ttl_s: int = TTL_S) -> None:
        self._registry = registry
        self._ttl_s = ttl_s
        self.held: Unchanged | None = None
        """Holds while this process leads: a condition of everything it writes as the leader."""

    async def run(self) -> None:
        """Campaigns, and keeps what it won, for ever; gives it up when cancelled."""
        while True:
            try:
                await self._term()
            except ServiceError as error:
                log.warning("leadership_interrupted", reason=error.message)
            await asyncio.sleep(self._ttl_s / 3)

    async def _term(self) -> None:
        lease = await self._registry.grant(self._ttl_s)
        try:
            put = Put(keys.ROLLOUT_LEADER, process_id().encode(), lease)
            won = await self._registry.transact((Unchanged(put.key, 0),), (put,))
            if won.succeeded:
                self.held = Unchanged(put.key, won.revision)
                log.info("leadership_won", key=put.key, revision=won.revision)
                await self._keep(lease, self.held)
        finally:
            self.held = None
            await self._registry.revoke(lease)

    async def _keep(self, lease: int, held: Unchanged) -> None:
        """Returns once the lease or the key is lost."""
        while await self._registry.keep_alive(lease) > 0:
            entry = await self._registry.get(held.key)
            if entry is None or entry.mod_revision != held.mod_revision:
                break
            await asyncio.sleep(self._ttl_s / 3)
        log.warning("leadership_lost", key=held.key)
