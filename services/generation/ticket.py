"""A job's place, from the queue to its last event."""

from __future__ import annotations

from collections.abc import Callable

from services.generation.stream import EventStream
from services.generation.types import Job


class Ticket:
    """One job and the way back of its events.

    ``on_close`` is told when the reader gives the job up.
    """

    def __init__(self, job: Job, on_close: Callable[[Ticket], None]) -> None:
        self.job = job
        self.stream = EventStream(lambda: on_close(self))

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for the answer any more."""
        return self.stream.closed
