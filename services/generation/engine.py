"""Generates for many jobs at once, in a thread of its own.

Built by the worker's composition root from plain values::

    vocabulary = Vocabulary(pieces=token_bytes(tokenizer), eos_id=..., mask_id=..., ...)
    model = SlotModel(module, slots=8, max_context=1024)
    family = BlockDiffusion(vocabulary, logit_shift=True)  # or NextToken(vocabulary)
    engine = Engine(model, family, vocabulary, EngineLimits(max_batch_size=8, queue_length=64))
    engine.start()
    async with engine.submit(job) as events:
        async for event in events: ...
"""

from __future__ import annotations

import asyncio
import math
import threading
import time

import structlog

from services.chassis.errors import (
    DeadlineExceeded,
    Draining,
    EngineFailure,
    InvalidRequest,
    LimitExceeded,
)
from services.generation.admission import WaitingLine
from services.generation.load import EngineLimits, EngineStatus
from services.generation.model import Model
from services.generation.outbox import Outbox
from services.generation.sequence import Family
from services.generation.step_loop import StepLoop
from services.generation.stream import EventStream
from services.generation.ticket import Ticket
from services.generation.types import Job
from services.generation.vocabulary import Vocabulary

__all__ = ["Engine", "EngineLimits", "EngineStatus", "EventStream"]

log = structlog.get_logger()

_PAUSE_S = 0.05
"""Between two looks while every sequence waits for its reader."""
_REST_S = 1.0
"""Between two looks while there is no work."""


class Engine:
    """The step loop's thread and what the event loop may ask of it.

    Its methods are called on the event loop on which it was started.
    """

    def __init__(
        self, model: Model, family: Family, vocabulary: Vocabulary, limits: EngineLimits
    ) -> None:
        self._model = model
        self._line = WaitingLine(limits.queue_length)
        self._outbox = Outbox()
        self._loop = StepLoop(
            model, family, vocabulary, self._line, self._outbox, limits, self._released
        )
        self._thread = threading.Thread(target=self._work, name="engine", daemon=True)
        self._open: set[Ticket] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._draining = False
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._last_look = time.monotonic()

    def start(self) -> None:
        """Starts the thread. Call once."""
        self._outbox.open(asyncio.get_running_loop())
        self._thread.start()

    def submit(self, job: Job) -> EventStream:
        """Queues the job.

        Raises at once QueueFull (with ``retry_after_s``), Draining, LimitExceeded
        (prompt and answer beyond the context), InvalidRequest (empty prompt) or
        DeadlineExceeded (not even one forward fits).
        """
        if self._draining:
            raise Draining("this node takes no new work")
        self._check(job)
        ticket = Ticket(job, self._give_up)
        self._line.put(ticket, self._loop.room)
        self._open.add(ticket)
        self._idle.clear()
        self._wake.set()
        return ticket.stream

    def set_limits(self, limits: EngineLimits) -> None:
        """Applies from the next step on; running sequences are never cut."""
        self._loop.limits = limits
        self._line.length = limits.queue_length
        self._wake.set()

    def snapshot(self) -> EngineStatus:
        """The load now."""
        tokens = sum(run.sequence.tokens_left for run in list(self._loop.runs)) + self._line.tokens
        return EngineStatus(
            running=len(self._loop.runs),
            queued=len(self._line),
            pending_forwards=math.ceil(tokens / self._loop.tokens_per_forward),
            step_seconds=self._loop.step_seconds,
            slots=self._model.slots,
            busy=bool(self._open),
            last_step_at=self._last_look,
            draining=self._draining,
        )

    def drain(self) -> None:
        """Refuses new jobs with Draining; what waits or runs goes on."""
        self._draining = True

    def resume(self) -> None:
        """Takes new jobs again."""
        self._draining = False

    async def idle(self) -> None:
        """Returns once nothing runs and nothing waits."""
        await self._idle.wait()

    async def stop(self) -> None:
        """Ends what is left with Draining and joins the thread. Idempotent."""
        self._draining = True
        self._stopping.set()
        self._wake.set()
        if self._thread.is_alive():
            await asyncio.to_thread(self._thread.join)

    def _check(self, job: Job) -> None:
        if not job.prompt_ids:
            raise InvalidRequest("the prompt is empty")
        room = self._model.max_context - job.given
        if not 0 < job.max_new_tokens <= room:
            raise LimitExceeded.field(
                "sampling.max_new_tokens",
                f"{job.max_new_tokens} do not fit beside an input of {job.given} tokens"
                f" in a context of {self._model.max_context}",
            )
        if not self._loop.starts_in_time(job):
            raise DeadlineExceeded("there is no time for a single forward")

    def _work(self) -> None:
        """The thread: steps while there is work, sleeps while there is none."""
        while not self._stopping.is_set():
            self._wake.clear()
            worked = self._step()
            self._last_look = time.monotonic()
            if not worked:
                self._wake.wait(_PAUSE_S if self._loop.runs else _REST_S)
        self._loop.end_all(Draining("this node is stopping"))

    def _step(self) -> bool:
        """One step; a fault of the loop itself ends all jobs but not the thread."""
        try:
            return self._loop.step()
        except Exception:
            log.exception("step_failed")
            self._loop.end_all(EngineFailure("the engine failed"))
            return False

    def _give_up(self, ticket: Ticket) -> None:
        """The reader left: out of the line at once, or out of its slot within a step."""
        if self._line.discard(ticket):
            self._released(ticket)
        self._wake.set()

    def _released(self, ticket: Ticket) -> None:
        """Nothing of the job is left in the line or in a slot."""
        self._open.discard(ticket)
        if not self._open:
            self._idle.set()
