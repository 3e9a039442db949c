"""What a node says of itself, and how those who watch are told at once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from braid.worker.v1 import worker_pb2
from services.chassis.ops import Readiness
from services.generation.device_memory import DeviceMemory, MemoryGate
from services.generation.engine import Engine
from services.generation.lifecycle import Lifecycle, State

STATES = {
    State.FETCHING: worker_pb2.NODE_STATE_FETCHING,
    State.VERIFYING: worker_pb2.NODE_STATE_VERIFYING,
    State.LOADING: worker_pb2.NODE_STATE_LOADING,
    State.WARMING: worker_pb2.NODE_STATE_WARMING,
    State.READY: worker_pb2.NODE_STATE_READY,
    State.DRAINING: worker_pb2.NODE_STATE_DRAINING,
    State.STOPPED: worker_pb2.NODE_STATE_STOPPED,
    State.FAILED: worker_pb2.NODE_STATE_FAILED,
}


class StatusBoard:
    """The node's state, load and memory at the moment of asking."""

    def __init__(self, lifecycle: Lifecycle, memory: DeviceMemory) -> None:
        self.engine: Engine | None = None
        self._lifecycle = lifecycle
        self._memory = memory
        self._gate = MemoryGate()

    def status(self) -> worker_pb2.NodeStatus:
        """The status as it goes over the wire."""
        life, memory = self._lifecycle, self._memory.used_bytes
        status = worker_pb2.NodeStatus(
            state=STATES[life.state],
            reason=life.reason,
            model_loaded=life.model_loaded,
            memory_ok=self._fits(memory),
            accepting=life.accepting,
            memory_bytes=memory,
            memory_limit_bytes=self._memory.ceiling_bytes,
        )
        if self.engine is not None:
            load = self.engine.snapshot()
            status.running, status.queued, status.slots = load.running, load.queued, load.slots
            status.pending_forwards = load.pending_forwards
            status.step_seconds = load.step_seconds
        return status

    def readiness(self) -> Readiness:
        """The three flags of /ready."""
        life = self._lifecycle
        fits = self._fits(self._memory.used_bytes)
        return Readiness(life.model_loaded, fits, life.accepting, life.reason)

    def _fits(self, memory_bytes: int) -> bool:
        return self._gate.look(memory_bytes, self._memory.ceiling_bytes)


class Watcher:
    """One open status stream."""

    def __init__(self) -> None:
        self._changed = asyncio.Event()
        self._caught_up = asyncio.Event()

    def touch(self) -> None:
        """Something changed."""
        self._caught_up.clear()
        self._changed.set()

    def sending(self) -> None:
        """A status is about to be taken: what changed before is in it."""
        self._changed.clear()

    def sent(self) -> None:
        """That status is on its way."""
        if not self._changed.is_set():
            self._caught_up.set()

    async def changed(self, timeout_s: float) -> None:
        """Returns at the next change, or after ``timeout_s``."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._changed.wait()

    async def caught_up(self) -> None:
        """Returns once the latest status was sent."""
        await self._caught_up.wait()


class StatusFeed:
    """Wakes the open status streams when something changes."""

    def __init__(self) -> None:
        self._watchers: set[Watcher] = set()

    def touch(self) -> None:
        """Something changed."""
        for watcher in self._watchers:
            watcher.touch()

    @contextmanager
    def watching(self) -> Iterator[Watcher]:
        """One stream, for as long as it is open."""
        watcher = Watcher()
        self._watchers.add(watcher)
        try:
            yield watcher
        finally:
            self._watchers.discard(watcher)

    async def told(self, timeout_s: float) -> None:
        """Returns once every stream has sent the latest status, or after ``timeout_s``."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await asyncio.gather(*(watcher.caught_up() for watcher in self._watchers))
