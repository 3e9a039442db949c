"""The way back of a job's events, from the engine's thread to the event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from types import TracebackType
from typing import Self

from services.chassis.errors import ServiceError
from services.generation.types import Delta, Draft, Event, Finished

MERGE_FROM = 16
"""Events that wait before further text joins the last of them."""

Item = Event | ServiceError


class EventStream(AsyncIterator[Event]):
    """The events of one job; the last is a Finished.

    Errors surface as ServiceError from the iteration. Leaving the ``async
    with``, ``aclose()``, or cancelling a task that awaits the next event frees
    the job's slot within one step. Read by one task on the event loop; the
    engine's thread only counts what it sends.

    A reader that is behind gets longer deltas rather than more of them, so that
    its answer can end and free its slot; only beyond ``capacity`` characters
    does the sequence have to wait for it. Drafts that were not read in time are
    left out: each holds only until the next event.
    """

    capacity = 65_536

    def __init__(self, on_close: Callable[[], None]) -> None:
        self._on_close = on_close
        self._items: deque[Item] = deque()
        self._arrived = asyncio.Event()
        self._sent = 0
        self._taken = 0
        self.closed = False
        """Whether nobody will read on: given up, or at its end."""

    @property
    def full(self) -> bool:
        """Whether the reader is too far behind; asked by the engine's thread."""
        return self._sent - self._taken >= self.capacity

    def count(self, item: Item) -> None:
        """Notes an item on its way; called by the engine's thread."""
        self._sent += _characters(item)

    def deliver(self, item: Item) -> None:
        """Hands the reader an item; called on the event loop. A closed stream drops it."""
        if self.closed:
            return
        if self._items and isinstance(self._items[-1], Draft):
            self._items.pop()
        last = self._items[-1] if len(self._items) >= MERGE_FROM else None
        if isinstance(item, Delta) and isinstance(last, Delta):
            self._items[-1] = replace(item, text=last.text + item.text)
        else:
            self._items.append(item)
        self._arrived.set()

    def fail(self, error: ServiceError) -> None:
        """Gives the job up for its reader, who gets ``error``; called on the event loop."""
        if not self.closed:
            self._close()
            self._items.append(error)
            self._arrived.set()

    async def aclose(self) -> None:
        """Gives the job up; does nothing if it has ended. Idempotent."""
        if not self.closed:
            self._close()
            self._arrived.set()

    async def __anext__(self) -> Event:
        try:
            while not self._items and not self.closed:
                self._arrived.clear()
                await self._arrived.wait()
        except asyncio.CancelledError:
            await self.aclose()
            raise
        if not self._items:
            raise StopAsyncIteration
        return self._take()

    def __aiter__(self) -> Self:
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def _close(self) -> None:
        self.closed = True
        self._items.clear()
        self._on_close()

    def _take(self) -> Event:
        item = self._items.popleft()
        self._taken += _characters(item)
        if isinstance(item, ServiceError):
            self.closed = True
            raise item
        if isinstance(item, Finished):
            self.closed = True
        return item


def _characters(item: Item) -> int:
    return len(item.text) if isinstance(item, Delta) else 0
