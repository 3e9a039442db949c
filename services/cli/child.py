"""One process of the mesh."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, Process
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from services.chassis import tethered

_TETHERED = Path(tethered.__file__)
_TAIL_LINES = 5
_COMPLAINT = "braid-"
"""How a line begins that a service of Braid writes for its operator."""


class Child:
    """A program that runs beside this one, writes to a log file and ends with this one.

    It has a session of its own: Ctrl-C in the terminal reaches this process
    alone, which then stops the parts in their order.
    """

    def __init__(
        self, name: str, program: Sequence[str], env: Mapping[str, str], log: Path
    ) -> None:
        self.name = name
        self.log = log
        self._program = tuple(program)
        self._env = dict(env)
        self._process: Process | None = None

    async def start(self) -> None:
        """Starts it. The calling thread must live as long as the mesh: the kernel ties to it."""
        tether = [sys.executable, "-I", "-S", str(_TETHERED), str(os.getpid())]
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *tether,
                *self._program,
                env=self._env,
                stdin=DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Its process id; known once started."""
        return self._started.pid

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.returncode is None

    async def ended(self) -> int:
        """Waits for its end and returns the exit code, negative for a signal."""
        return await self._started.wait()

    async def stop(self, grace_s: float) -> None:
        """Asks it to end and waits; after ``grace_s`` it is killed."""
        if not self.running:
            return
        self.send_signal(signal.SIGTERM)
        self.send_signal(signal.SIGCONT)
        try:
            async with asyncio.timeout(grace_s):
                await self.ended()
        except TimeoutError:
            self.kill()
            await self.ended()

    def kill(self) -> None:
        """Ends it at once."""
        self.send_signal(signal.SIGKILL)

    def send_signal(self, number: signal.Signals) -> None:
        """Sends a signal, if it still runs.

        Not through the process object, which would first collect an exit code
        that asyncio waits for, and leave 255 in its place.
        """
        if self.running:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def last_words(self) -> str:
        """Why it ended: what it complained of in plain words, else the end of its log."""
        with self.log.open("r", encoding="utf-8", errors="replace") as log:
            lines = [line.strip() for line in deque(log, _TAIL_LINES)]
        plain = [line for line in lines if line.startswith(_COMPLAINT)]
        return plain[-1] if plain else " | ".join(lines)

    @property
    def _started(self) -> Process:
        if self._process is None:
            raise RuntimeError(f"{self.name} was not started")
        return self._process
