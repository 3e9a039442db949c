"""Work on a stream of items, so many at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


async def windowed(
    items: AsyncIterator[T], work: Callable[[T], Awaitable[R]], most: int
) -> AsyncGenerator[R, None]:
    """Results as they come, not in the order of the items.

    At most ``most`` items have been read whose results were not taken: a reader
    that takes none stops the reading of items. Where ``work`` or the items raise,
    no more is read, what runs may end, and the error comes last.
    """
    window = _Window(items, work)
    try:
        while window.goes_on:
            for result in await window.some(most):
                yield result
        if window.failure is not None:
            raise window.failure
    finally:
        await window.close()


class _Window(Generic[T, R]):
    """The items at work, and the one that is being read."""

    def __init__(self, items: AsyncIterator[T], work: Callable[[T], Awaitable[R]]) -> None:
        self.failure: Exception | None = None
        self._items = items
        self._work = work
        self._running: set[asyncio.Task[R]] = set()
        self._reading: asyncio.Task[tuple[T, ...]] | None = None
        self._ended = False

    @property
    def goes_on(self) -> bool:
        """Whether anything is still to come."""
        return bool(self._running or not self._ended)

    async def some(self, most: int) -> list[R]:
        """The results that are there once anything has happened."""
        if not self._ended and self._reading is None and len(self._running) < most:
            self._reading = asyncio.ensure_future(self._read())
        reading = {self._reading} if self._reading else set()
        await asyncio.wait(self._running | reading, return_when=asyncio.FIRST_COMPLETED)
        if self._reading is not None and self._reading.done():
            self._take(self._reading)
        done = {task for task in self._running if task.done()}
        self._running -= done
        return [task.result() for task in done if not self._failed(task)]

    async def close(self) -> None:
        """Gives up what is left."""
        left = [*self._running, *([self._reading] if self._reading else [])]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _read(self) -> tuple[T, ...]:
        async for item in self._items:
            return (item,)
        return ()

    def _take(self, reading: asyncio.Task[tuple[T, ...]]) -> None:
        self._reading = None
        if self._failed(reading):
            return
        for item in reading.result():
            self._running.add(asyncio.ensure_future(self._work(item)))
            return
        self._ended = True

    def _failed(self, task: asyncio.Task[R] | asyncio.Task[tuple[T, ...]]) -> bool:
        error = task.exception()
        if isinstance(error, Exception):
            self.failure = self.failure or error
            self._ended = True
        return error is not None
