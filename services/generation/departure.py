"""How a node leaves: told, taken out of the registry, closed to new calls, idle."""

from __future__ import annotations

import asyncio
from typing import Protocol

import structlog

from services.chassis.errors import Draining, NothingLoaded
from services.generation.lifecycle import Lifecycle, State
from services.generation.node_status import StatusFeed
from services.generation.reception import Reception

TELLING_S = 0.5
"""Longest wait until every status stream has said that the node drains."""
SETTLING_S = 0.2
"""Calls are still taken so long after that, for routers that do not know it yet."""

log = structlog.get_logger()


class Withdraws(Protocol):
    """What keeps the node in the registry."""

    async def withdraw(self) -> None:
        """Takes the record away."""
        ...


class Departure:
    """Takes the node out of service step by step; can be asked for again."""

    def __init__(
        self, lifecycle: Lifecycle, reception: Reception, feed: StatusFeed, grace_s: float
    ) -> None:
        self.registration: Withdraws | None = None
        self._back = asyncio.Event()
        self._final = False
        self._lifecycle = lifecycle
        self._reception = reception
        self._feed = feed
        self._grace_s = grace_s
        self._leaving = asyncio.Lock()

    async def leave_for_good(self, reason: str) -> bool:
        """As ``drain``, without a way back."""
        self._final = True
        return await self.drain(reason)

    async def resume(self) -> None:
        """Takes a drained node into service again.

        Raises Draining where the process is about to end, NothingLoaded without a model.
        """
        async with self._leaving:
            if self._final:
                raise Draining("the node is stopping")
            if self._lifecycle.unloaded:
                raise NothingLoaded("the node has no model: load one first")
            if self._lifecycle.state is State.DRAINING:
                self._lifecycle.advance(State.READY)
                self._reception.admit()
                self._back.set()

    async def resumed(self) -> None:
        """Returns once the node was taken back into service."""
        await self._back.wait()
        self._back.clear()

    async def drain(self, reason: str, grace_s: float | None = None) -> bool:
        """Returns True once nothing runs, False where the grace passed first.

        Calls that still run then go on. A node that does not serve has nothing
        to drain.
        """
        async with self._leaving:
            if self._lifecycle.state is State.READY:
                await self._leave(reason)
        return await self._reception.calls.idle(self._grace_s if grace_s is None else grace_s)

    async def _leave(self, reason: str) -> None:
        self._lifecycle.advance(State.DRAINING, reason)
        await self._feed.told(TELLING_S)
        if self.registration is not None:
            await self.registration.withdraw()
        await asyncio.sleep(SETTLING_S)
        self._reception.refuse(Draining("the node is draining"))
