"""How many calls run, and when there are none."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class InFlight:
    """A count with an event at zero. Used from one event loop."""

    def __init__(self) -> None:
        self._count = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def count(self) -> int:
        """Calls that run now."""
        return self._count

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Counts one call while the block runs."""
        self._count += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._count -= 1
            if self._count == 0:
                self._idle.set()

    async def idle(self, timeout_s: float) -> bool:
        """Waits until nothing runs; False where ``timeout_s`` passed first."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True
