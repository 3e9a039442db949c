"""Callers that go on until they are told to stop."""

from __future__ import annotations

import asyncio
from collections import Counter

from braid.inference.v1 import inference_pb2 as pb
from tests.eventually import eventually
from tests.router.calls import outcome
from tests.router.processes import Router


class Traffic:
    """Callers that go on until they are told to stop, and what became of their calls."""

    def __init__(self, router: Router, request: pb.GenerateRequest, callers: int = 8) -> None:
        self.outcomes: Counter[str] = Counter()
        self._router = router
        self._request = request
        self._going = True
        self._callers = [asyncio.create_task(self._call()) for _ in range(callers)]

    async def _call(self) -> None:
        while self._going:
            self.outcomes[await outcome(self._router, self._request)] += 1

    async def reached(self, name: str, calls: int) -> None:
        """Waits until so many calls ended so."""
        await eventually(lambda: self.outcomes[name] >= calls, 20)

    async def end(self) -> None:
        """Lets the last calls end."""
        self._going = False
        await asyncio.gather(*self._callers)
