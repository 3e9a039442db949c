"""Sending a slow call to a second node and taking whichever answers first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")

Start = Callable[[], Coroutine[Any, Any, T]]


class Race(Generic[T]):
    """Two runs of the same work, the second started late and only if there is one.

    ``second`` is asked for once, when the first has taken ``after_s``; it gives
    None where there is nobody to run it. What a run returns that did not win is
    handed to ``discard``.
    """

    def __init__(
        self,
        first: Start[T],
        second: Callable[[], Start[T] | None],
        after_s: float,
        discard: Callable[[T], None],
    ) -> None:
        self._first = first
        self._second = second
        self._after_s = after_s
        self._discard = discard
        self._runs: list[asyncio.Task[T]] = []
        self._winner: asyncio.Task[T] | None = None

    @property
    def second_won(self) -> bool:
        """Whether the second run was the first to succeed."""
        return self._winner is not None and self._winner is not self._runs[0]

    async def result(self) -> T:
        """What the first run to succeed returns; what the last one raises where none does.

        When it returns, whatever did not win has ended.
        """
        self._start(self._first)
        try:
            done, _ = await asyncio.wait(self._runs, timeout=self._after_s)
            second = None if done else self._second()
            if second is not None:
                self._start(second)
            self._winner = await self._first_success()
            return self._winner.result()
        finally:
            await self._end()

    def _start(self, work: Start[T]) -> None:
        self._runs.append(asyncio.create_task(work()))

    async def _first_success(self) -> asyncio.Task[T]:
        """The first run without an error, else the last one to end."""
        running = set(self._runs)
        while True:
            done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            ended = [run for run in self._runs if run in done]
            good = [run for run in ended if run.exception() is None]
            if good or not running:
                return (good or ended)[0]

    async def _end(self) -> None:
        for run in self._runs:
            run.cancel()
        for run in self._runs:
            (outcome,) = await asyncio.gather(run, return_exceptions=True)
            if run is not self._winner and not isinstance(outcome, BaseException):
                self._discard(outcome)
