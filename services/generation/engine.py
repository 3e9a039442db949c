"""The step loop that generates for all requests of one worker.

Built by the worker's composition root from plain values::

    vocabulary = Vocabulary(pieces=token_bytes(tokenizer), eos_id=..., mask_id=..., ...)
    model = SlotModel(module, slots=8, max_context=1024)
    family = BlockDiffusion(vocabulary, logit_shift=True)   # or NextToken(vocabulary)
    engine = Engine(model, family, vocabulary, EngineLimits(max_batch_size=8, queue_length=64))
    engine.start()
    async with engine.submit(job) as events:
        async for event in events: ...
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from services.generation.types import Event, Job


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """What the engine may take on; can be replaced between any two steps.

    ``max_concurrency`` sequences hold a slot at once (0: as many as there are
    slots), ``max_batch_size`` of them share a forward, ``max_forward_rows``
    token rows go into one, and ``queue_length`` jobs wait.
    """

    max_batch_size: int = 8
    queue_length: int = 64
    max_concurrency: int = 0
    max_forward_rows: int = 512


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """The engine's load, for the router and for metrics."""

    running: int
    queued: int
    pending_forwards: int
    """Forward passes that the running and waiting jobs still need, at most."""
    step_seconds: float
    """Moving average of one step; 0 before the first."""
    slots: int
    busy: bool
    """Whether there was work at the last look."""
    last_step_at: float
    """time.monotonic() at the end of the last step: with ``busy``, a watchdog's food."""
    draining: bool


class EventStream(AsyncIterator[Event]):
    """The events of one job; the last is a Finished.

    Errors surface as ServiceError from the iteration. Leaving the ``async
    with``, ``aclose()``, or cancelling a task that awaits the next event frees
    the job's slot within one step.
    """

    async def __anext__(self) -> Event:
        raise NotImplementedError

    async def aclose(self) -> None:
        """Gives the job up; does nothing if it has ended. Idempotent."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


class Engine:
    """Generates for many jobs at once; runs torch in a thread of its own."""

    def start(self) -> None:
        """Starts the thread. Call once, on the event loop that will submit."""
        raise NotImplementedError

    def submit(self, job: Job) -> EventStream:
        """Queues the job.

        Raises at once QueueFull (with ``retry_after_s``), Draining, LimitExceeded
        (prompt + max_new_tokens beyond the context) or DeadlineExceeded. Call on
        the event loop.
        """
        raise NotImplementedError

    def set_limits(self, limits: EngineLimits) -> None:
        """Applies from the next step on; running sequences are never cut."""
        raise NotImplementedError

    def snapshot(self) -> EngineStatus:
        """The load now; cheap, from any thread."""
        raise NotImplementedError

    def drain(self) -> None:
        """Refuses new jobs with Draining; what waits or runs goes on."""
        raise NotImplementedError

    def resume(self) -> None:
        """Takes new jobs again."""
        raise NotImplementedError

    async def idle(self) -> None:
        """Returns once nothing runs and nothing waits."""
        raise NotImplementedError

    async def stop(self) -> None:
        """Ends what is left with Draining and joins the thread."""
        raise NotImplementedError
