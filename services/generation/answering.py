"""From a plan to the events of its answer, on one engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Protocol

import structlog

from services.chassis.errors import ConstraintNotMet, DeadlineExceeded
from services.generation.figures import repaired
from services.generation.grammar.compiler import Check
from services.generation.grammar.spans import SpanForms
from services.generation.limits import Limits
from services.generation.plan import Plan
from services.generation.planner import MAX_SEED, Planner
from services.generation.span_edit import SpanEdit
from services.generation.stream import EventStream
from services.generation.types import Delta, Event, Finished, FinishReason, Job

MAX_REPAIRS = 1
REPAIR_TEMPERATURE = 0.5
"""Least temperature of a second try: a greedy one would only repeat the first."""

Events = AsyncGenerator[Event, None]

log = structlog.get_logger()


class Submits(Protocol):
    """What takes jobs: an engine, or a test's stand-in for one."""

    def submit(self, job: Job) -> EventStream:
        """Starts the job; see Engine.submit."""
        ...


class Answering:
    """Runs plans as one or more sequences; the caller sees one answer."""

    def __init__(
        self, engine: Submits, planner: Planner, on_violation: Callable[[], None] = lambda: None
    ) -> None:
        self._engine = engine
        self._planner = planner
        self._on_violation = on_violation

    def events(self, plan: Plan, limits: Limits) -> Events:
        """The answer's events; the last is a Finished. Closing them frees the engine."""
        if plan.check is not None and plan.exact:
            return self._kept(plan, plan.check, limits)
        if plan.check is not None:
            return self._checked(plan, plan.check, limits)
        return self._unchecked(plan, plan.job, limits)

    async def _kept(self, plan: Plan, check: Check, limits: Limits) -> Events:
        """Passes on what the automaton lets through; the check is an alarm that stays silent."""
        texts: list[str] = []
        async with aclosing(self._unchecked(plan, plan.job, limits)) as events:
            async for event in events:
                if isinstance(event, Delta):
                    texts.append(event.text)
                if isinstance(event, Finished) and not _left_spans(plan, event):
                    await self._raise_alarm(plan.job, check, "".join(texts))
                yield event

    async def _raise_alarm(self, job: Job, check: Check, text: str) -> None:
        if not await asyncio.to_thread(check, text):
            self._on_violation()
            log.error("constraint_violated", request_id=job.request_id)
            raise ConstraintNotMet("the answer does not conform: a fault of this service")

    async def _checked(self, plan: Plan, check: Check, limits: Limits) -> Events:
        """Holds the text back until it conforms; tries once more where it does not.

        An answer that was cut short is passed on as it is, and says so.
        """
        tries: list[Finished] = []
        for attempt in range(1 + MAX_REPAIRS):
            job = plan.job if attempt == 0 else _drawn_anew(plan.job, attempt)
            text, last, finished = await gathered(self._unchecked(plan, job, limits))
            tries.append(finished)
            whole = finished.finish_reason is FinishReason.STOP
            if not whole or await asyncio.to_thread(check, text):
                if text:
                    yield replace(last, text=text)
                yield repaired(tries)
                return
        raise ConstraintNotMet(f"no answer in {len(tries)} tries conforms to the constraint")

    def _unchecked(self, plan: Plan, job: Job, limits: Limits) -> Events:
        if plan.edit is not None:
            progress = SpanEdit(plan.edit, job.max_new_tokens, plan.shares)
            return self._spans(progress, job, plan.spans, limits)
        return self._sequence(job, plan.truncated)

    async def _sequence(self, job: Job, truncated: bool) -> Events:
        async with self._engine.submit(job) as events:
            async for event in events:
                if isinstance(event, Finished):
                    usage = replace(event.usage, input_truncated=truncated)
                    event = replace(event, usage=usage)
                yield event

    async def _spans(
        self, progress: SpanEdit, job: Job, forms: SpanForms | None, limits: Limits
    ) -> Events:
        for index, span in enumerate(progress.spans):
            for delta in progress.copy(span[0]):
                yield delta
            gap, tokens = progress.gap(span)
            part, truncated = self._planner.gap(job, gap, tokens, limits)
            part = replace(part, seed=_shifted(job.seed, index))
            if forms is not None:
                part = replace(part, automaton=forms.at(index, progress.written), echoes=())
            try:
                async with aclosing(self._sequence(part, truncated)) as events:
                    async for event in events:
                        for shown in progress.take(event):
                            yield shown
            except DeadlineExceeded:
                if forms is not None or not progress.may_leave:
                    raise
                progress.leave(span)
            if progress.late:
                break
        for delta in progress.copy():
            yield delta
        yield progress.finished


async def gathered(events: AsyncIterator[Event]) -> tuple[str, Delta, Finished]:
    """The whole text, the last delta and the end of an answer."""
    texts: list[str] = []
    last, finished = Delta(""), None
    async for event in events:
        if isinstance(event, Finished):
            finished = event
        elif isinstance(event, Delta):
            texts.append(event.text)
            last = event
    assert finished is not None
    return "".join(texts), last, finished


def _left_spans(plan: Plan, finished: Finished) -> bool:
    """Whether time ran out before all spans were filled, so that the form is not met."""
    return plan.edit is not None and finished.finish_reason is FinishReason.DEADLINE


def _drawn_anew(job: Job, attempt: int) -> Job:
    """The same job with other random numbers, the same ones each time it is repeated."""
    temperature = max(job.temperature, REPAIR_TEMPERATURE)
    return replace(job, seed=_shifted(job.seed, attempt), temperature=temperature)


def _shifted(seed: int, by: int) -> int:
    return (seed + by) % (MAX_SEED + 1)
