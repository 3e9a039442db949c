"""One step of the engine: everybody's next rows in one forward."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial

import structlog

from services.chassis.errors import DeadlineExceeded, EngineFailure, ServiceError, SlowReader
from services.generation.admission import WaitingLine
from services.generation.claims import Room, choose, lost
from services.generation.load import EngineLimits
from services.generation.model import Model
from services.generation.outbox import Outbox
from services.generation.run import Run
from services.generation.sampling import Predictions, predict
from services.generation.sequence import Family, Rows
from services.generation.slots import GRAIN
from services.generation.step_clock import StepClock
from services.generation.text import Transcript
from services.generation.ticket import Ticket
from services.generation.types import Event, Finished, Job
from services.generation.vocabulary import Vocabulary

log = structlog.get_logger()

STALL_LIMIT_S = 30.0
"""How long a reader may be too far behind before its call is cut."""

Batch = list[tuple[Run, Rows]]


class StepLoop:
    """The sequences that hold slots, and the step that moves them all on.

    Used by the engine's thread alone, but for ``limits`` and the figures.
    """

    def __init__(
        self,
        model: Model,
        family: Family,
        vocabulary: Vocabulary,
        line: WaitingLine,
        outbox: Outbox,
        limits: EngineLimits,
        on_release: Callable[[Ticket], None],
        time_now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limits = limits
        self.clock = StepClock()
        self.step_seconds = 0.0
        self.over_at = 0.0
        """When the step under way is likely to end; when the last one ended, if none is."""
        self.tokens_per_forward = 1.0
        self.runs: list[Run] = []
        """Least recently computed first."""
        self._model = model
        self._family = family
        self._vocabulary = vocabulary
        self._banned = () if vocabulary.mask_id is None else (vocabulary.mask_id,)
        self._line = line
        self._outbox = outbox
        self._on_release = on_release
        self._time_now = time_now
        self._free_slots = list(reversed(range(model.slots)))

    @property
    def room(self) -> int:
        """Sequences that could be admitted now."""
        most = min(self.limits.max_concurrency or self._model.slots, self._model.slots)
        return max(0, most - len(self.runs))

    def step(self) -> bool:
        """Moves everybody on by one forward; False if there was nothing to compute.

        What ends without it does not wait for it.
        """
        now = self._time_now()
        self._drop(now)
        self._admit(now)
        batch = self._choose(now)
        rows = sum(len(rows.tokens) for _, rows in batch)
        self._refuse_late(now + self.clock.expect(rows, surely=True) if batch else now)
        self._outbox.flush()
        if batch:
            self.over_at = now + self.clock.expect(rows)
            self._compute(batch)
            self.over_at = self._time_now()
            self._time(rows, self.over_at - now)
        self._outbox.flush()
        return bool(batch)

    def starts_in_time(self, job: Job) -> bool:
        """Whether a job that comes now has time for its first forward; from any thread."""
        return self._fits(job, max(self._time_now(), self.over_at))

    def end_all(self, error: ServiceError) -> None:
        """Ends what runs and what waits with ``error``."""
        for run in list(self.runs):
            self._fail(run, error)
        for ticket in self._line.clear():
            self._refuse(ticket, error)
        self._outbox.flush()

    def _drop(self, now: float) -> None:
        """Frees the slots of sequences that nobody waits for, or that are out of time."""
        self._refuse_late(now)
        for run in list(self.runs):
            job = run.ticket.job
            if run.ticket.cancelled:
                self._release(run)
            elif job.deadline is not None and now >= job.deadline:
                self._fail(run, DeadlineExceeded("the deadline passed during generation"))
            elif run.behind_for(now) > STALL_LIMIT_S:
                self._fail(run, SlowReader(f"nothing was read for {STALL_LIMIT_S:.0f} s"))

    def _refuse_late(self, start: float) -> None:
        """Takes those out of the line who are not in time if they start at ``start``."""
        for ticket in self._line.expired(lambda job: self._fits(job, start)):
            self._refuse(ticket, DeadlineExceeded("the time went by in the queue"))

    def _fits(self, job: Job, start: float) -> bool:
        rows = _least_rows(job)
        if start + self.clock.expect(rows) <= job.expires:
            return True
        self.clock.doubt(rows)
        return False

    def _admit(self, now: float) -> None:
        """Gives free slots to those whose turn it is; batch jobs leave the last one free."""
        while self._free_slots and self.room:
            ticket = self._line.take(now, offline=self.room > 1 or not self.runs)
            if ticket is None:
                return
            self._open(ticket, now)

    def _open(self, ticket: Ticket, now: float) -> None:
        job = ticket.job
        try:
            sequence = self._family.open(job)
        except Exception as error:
            self._refuse(ticket, _as_service_error(error, job))
            return
        slot = self._free_slots.pop()
        stops = (*job.stop, *job.echoes)
        transcript = Transcript(self._vocabulary, stops, thinking=job.thinking)
        run = Run(ticket, slot, sequence, transcript, now)
        self.runs.append(run)
        sequence.skip(self._model.prefixes.restore(slot, sequence.head))

    def _choose(self, now: float) -> Batch:
        """Rows of those who share the next forward; who has no time for another one ends.

        Those alike come next to each other: attention takes them together.
        """
        expect = self.clock.expect
        asked = self._asked()
        for run, rows in asked:
            if not run.claim(rows).fits(len(rows.tokens), now, expect):
                self._cut(run, rows, now)
        asked = [(run, rows) for run, rows in asked if run in self.runs]
        claims = [run.claim(rows) for run, rows in asked]
        room = Room(self.limits.max_batch_size, self.limits.max_forward_rows)
        chosen = choose(claims, room, now, expect)
        for i in lost(claims, chosen, now, expect):
            self._cut(*asked[i], now)
        batch = [asked[i] for i in chosen]
        self._pace(batch, now)
        return sorted(batch, key=lambda pair: (len(pair[1].tokens), pair[0].slot))

    def _asked(self) -> Batch:
        """What each sequence wants computed, but for those whose reader is behind."""
        asked: Batch = []
        for run in list(self.runs):
            if run.behind_for(self._time_now()):
                continue
            try:
                asked.append((run, run.sequence.rows()))
            except Exception as error:
                self._fail(run, _as_service_error(error, run.ticket.job))
        return asked

    def _cut(self, run: Run, rows: Rows, now: float) -> None:
        """Ends a sequence whose next forward would be too late, with what it has."""
        self.clock.doubt(len(rows.tokens))
        self._act(run, partial(run.cut, now))

    def _pace(self, batch: Batch, now: float) -> None:
        """Tells those in a hurry how many forwards there is time for, in this company."""
        first = sum(len(rows.tokens) for _, rows in batch)
        later = sum(rows.open_rows for _, rows in batch)
        for run, _ in batch:
            if run.latest < math.inf:
                left = self.clock.forwards(run.latest - now, first, later)
                run.sequence.forwards_left = left

    def _compute(self, batch: Batch) -> None:
        """One forward; its failure fails those in it and nobody else."""
        for run, _ in batch:
            run.sound = False
        try:
            predictions = self._forward(batch)
        except Exception as error:
            log.error("forward_failed", sequences=len(batch), exc_info=error)
            for run, _ in batch:
                self._fail(run, EngineFailure("the forward pass failed"))
            return
        now, start = self._time_now(), 0
        for run, rows in batch:
            end = start + len(rows.wanted)
            self._act(run, partial(run.advance, predictions.part(start, end), now))
            start = end
            if head := run.finished_head:
                self._model.prefixes.keep(run.slot, head)
        self._rotate(batch)

    def _forward(self, batch: Batch) -> Predictions:
        logits = self._model.forward([(run.slot, rows) for run, rows in batch])
        draws = [draw for _, rows in batch for draw in rows.all_draws()]
        spreads = [spread for _, rows in batch for spread in rows.all_spreads()]
        return predict(logits, draws, self._banned, spreads)

    def _rotate(self, batch: Batch) -> None:
        """Those who were computed go behind those who were not."""
        served = {run for run, _ in batch}
        waiting = [run for run in self.runs if run not in served]
        for run in self.runs:
            run.passed_over = 0 if run in served else run.passed_over + 1
        if waiting:
            self.runs = waiting + [run for run in self.runs if run in served]

    def _act(self, run: Run, action: Callable[[], list[Event]]) -> None:
        """Sends what the action gives; an error in it ends this sequence alone."""
        try:
            events = action()
        except Exception as error:
            self._fail(run, _as_service_error(error, run.ticket.job))
            return
        for event in events:
            self._outbox.send(run.ticket, event)
            if isinstance(event, Finished):
                self._release(run)
                self._note(event)

    def _time(self, rows: int, seconds: float) -> None:
        self.clock.note(rows, seconds)
        self.step_seconds = _average(self.step_seconds, seconds)

    def _note(self, finished: Finished) -> None:
        measured = finished.usage.tokens_per_forward
        if measured > 0:
            self.tokens_per_forward = _average(self.tokens_per_forward, measured)

    def _fail(self, run: Run, error: ServiceError) -> None:
        self._outbox.send(run.ticket, error)
        self._release(run)

    def _refuse(self, ticket: Ticket, error: ServiceError) -> None:
        self._outbox.send(ticket, error)
        self._outbox.call(lambda: self._on_release(ticket))

    def _release(self, run: Run) -> None:
        self.runs.remove(run)
        run.sequence.close()
        if not run.sound:
            self._model.clear(run.slot)
        self._free_slots.append(run.slot)
        self._outbox.call(lambda: self._on_release(run.ticket))


def _least_rows(job: Job) -> int:
    """Rows that are computed before there is any answer, whatever of the input is kept already."""
    length = job.denoising.block_length if job.denoising else 1
    kept = max(0, job.given - 1) // GRAIN * GRAIN
    return max(1, (job.given // length + 1) * length - kept)


def _average(old: float, new: float) -> float:
    """Moving average; the first figure stands for itself."""
    return new if old == 0 else old + 0.1 * (new - old)


def _as_service_error(error: Exception, job: Job) -> ServiceError:
    """A sequence's failure as its caller sees it; one that nobody foresaw is logged."""
    if isinstance(error, ServiceError):
        return error
    log.error("sequence_failed", request_id=job.request_id, exc_info=error)
    return EngineFailure("this sequence failed")
