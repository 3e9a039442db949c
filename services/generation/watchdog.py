"""Notices an engine that is busy and makes no steps."""

from __future__ import annotations

import asyncio
import time

import structlog

from services.chassis.errors import EngineStalled
from services.generation.engine import Engine, EngineStatus
from services.generation.lifecycle import Lifecycle, State
from services.generation.reception import Reception, TrackedEngine

log = structlog.get_logger()

_LOOKS = 4
"""Looks within the time after which an engine counts as stalled."""


def is_stalled(load: EngineStatus, now: float, patience_s: float) -> bool:
    """Whether an engine with work to do has made no step for ``patience_s``."""
    return load.busy and now - load.last_step_at > patience_s


class Watchdog:
    """Turns readiness off and ends the waiting calls while the engine hangs."""

    def __init__(
        self,
        engine: Engine,
        calls: TrackedEngine,
        lifecycle: Lifecycle,
        reception: Reception,
        patience_s: float,
    ) -> None:
        self._engine = engine
        self._calls = calls
        self._lifecycle = lifecycle
        self._reception = reception
        self._patience_s = patience_s

    async def run(self) -> None:
        """Looks again and again, until cancelled."""
        while True:
            await asyncio.sleep(self._patience_s / _LOOKS)
            self.look()

    def look(self) -> None:
        """Compares the engine's progress with the clock once."""
        stalled = is_stalled(self._engine.snapshot(), time.monotonic(), self._patience_s)
        if stalled and not self._lifecycle.stalled:
            self._close()
        elif self._lifecycle.stalled and not stalled:
            self._open()

    def _close(self) -> None:
        log.error("engine_stalled", alert=True, patience_s=self._patience_s)
        self._lifecycle.stall(f"the engine has made no step for {self._patience_s:g} s")
        error = EngineStalled("the node's engine makes no steps")
        if self._lifecycle.state is State.READY:
            self._reception.refuse(error)
        self._calls.fail_all(error)

    def _open(self) -> None:
        log.info("engine_recovered")
        self._lifecycle.recover()
        if self._lifecycle.state is State.READY:
            self._reception.admit()
