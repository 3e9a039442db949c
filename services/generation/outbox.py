"""Calls that the engine's thread makes on the event loop, one hop per step."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from services.generation.stream import Item
from services.generation.ticket import Ticket


class Outbox:
    """Collects what a step has to tell and hands it over in one go, in order.

    A loop that is closed already gets nothing: its readers are gone.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._calls: list[Callable[[], None]] = []

    def open(self, loop: asyncio.AbstractEventLoop) -> None:
        """Names the event loop; nothing is handed over before."""
        self._loop = loop

    def send(self, ticket: Ticket, item: Item) -> None:
        """An event or the error that ends the stream."""
        ticket.stream.count(item)
        self._calls.append(lambda: ticket.stream.deliver(item))

    def call(self, function: Callable[[], None]) -> None:
        """Anything else, after what was sent before it."""
        self._calls.append(function)

    def flush(self) -> None:
        """Hands over what has been collected."""
        if self._calls and self._loop is not None:
            calls, self._calls = self._calls, []
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(_run_all, calls)


def _run_all(calls: list[Callable[[], None]]) -> None:
    for call in calls:
        call()
