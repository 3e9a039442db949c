"""The line in front of the engine: bounded, by priority, without starvation."""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable

from services.chassis.errors import QueueFull
from services.generation.ticket import Ticket
from services.generation.types import Job, Priority

HANDICAP_S = {Priority.INTERACTIVE: 0.0, Priority.NORMAL: 2.0, Priority.BATCH: 30.0}
"""Seconds later than it came that a job takes its place in line.

A normal job that has waited 2 s goes before an interactive one that comes now;
so nothing waits for ever behind a stream of more urgent work. Nobody's place is later
than its own end.
"""


Entry = tuple[float, int, Ticket]


class WaitingLine:
    """Jobs that wait for a slot; safe to use from any thread.

    Cancelled jobs leave at once and never come out of it.
    """

    def __init__(self, length: int) -> None:
        self.length = length
        self._lock = threading.Lock()
        self._heap: list[Entry] = []
        self._waiting: set[Ticket] = set()
        self._numbers = itertools.count()
        self._pace = _Pace()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def tokens(self) -> int:
        """Answer tokens that the waiting jobs may ask for."""
        with self._lock:
            return sum(ticket.job.max_new_tokens for ticket in self._waiting)

    def put(self, ticket: Ticket, free: int = 0) -> None:
        """Adds a job; raises QueueFull, telling when half the line will have gone.

        ``free`` jobs in it are about to get a slot: they do not count as waiting.
        """
        with self._lock:
            waiting = len(self._waiting)
            if waiting >= self.length + free:
                wait = self._pace.seconds_each * max(1.0, waiting / 2)
                raise QueueFull(f"{waiting} requests are waiting", retry_after_s=wait)
            due = min(ticket.job.arrived + HANDICAP_S[ticket.job.priority], ticket.job.expires)
            heapq.heappush(self._heap, (due, next(self._numbers), ticket))
            self._waiting.add(ticket)

    def take(self, now: float, *, offline: bool = True) -> Ticket | None:
        """The job whose turn it is; batch jobs keep their place unless ``offline``."""
        with self._lock:
            self._pace.note(now, crowded=len(self._waiting) > 1)
            taken = self._pop(self._heap) if self._urgent or offline else None
            passed = []
            while taken is not None and not (offline or _is_urgent(taken[2])):
                passed.append(taken)
                taken = self._pop(self._heap)
            for entry in passed:
                heapq.heappush(self._heap, entry)
            if taken is None:
                return None
            self._waiting.remove(taken[2])
            return taken[2]

    @property
    def _urgent(self) -> bool:
        """Whether anybody but batch jobs waits."""
        return any(map(_is_urgent, self._waiting))

    def _pop(self, heap: list[Entry]) -> Entry | None:
        """The first entry of a job that still waits."""
        while heap:
            entry = heapq.heappop(heap)
            if entry[2] in self._waiting:
                return entry
        return None

    def discard(self, ticket: Ticket) -> bool:
        """Takes a job out; False if it has left already."""
        with self._lock:
            if ticket not in self._waiting:
                return False
            self._waiting.remove(ticket)
            if len(self._heap) > 2 * len(self._waiting) + 8:
                self._heap = [entry for entry in self._heap if entry[2] in self._waiting]
                heapq.heapify(self._heap)
            return True

    def expired(self, in_time: Callable[[Job], bool]) -> list[Ticket]:
        """Takes out the jobs that can no longer be begun in time."""
        with self._lock:
            late = [ticket for ticket in self._waiting if not in_time(ticket.job)]
            self._waiting.difference_update(late)
        return late

    def clear(self) -> list[Ticket]:
        """Takes everybody out."""
        with self._lock:
            left, self._waiting = list(self._waiting), set()
            self._heap.clear()
        return left


def _is_urgent(ticket: Ticket) -> bool:
    return ticket.job.priority is not Priority.BATCH


class _Pace:
    """Moving average of the time between two jobs that leave a crowded line."""

    def __init__(self) -> None:
        self.seconds_each = 0.1
        self._last: float | None = None

    def note(self, now: float, *, crowded: bool) -> None:
        if crowded and self._last is not None:
            self.seconds_each += 0.2 * (now - self._last - self.seconds_each)
        self._last = now if crowded else None
