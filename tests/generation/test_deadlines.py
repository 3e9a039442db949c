"""Answers in time, on a clock of their own: a forward takes what its rows cost."""

from __future__ import annotations

import math
from collections.abc import Sequence as Many
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from services.chassis.errors import DeadlineExceeded
from services.generation.admission import WaitingLine
from services.generation.load import EngineLimits
from services.generation.outbox import Outbox
from services.generation.sequence import Rows
from services.generation.slot_model import SlotModel
from services.generation.step_loop import StepLoop
from services.generation.stream import Item
from services.generation.ticket import Ticket
from services.generation.types import Finished, FinishReason, Job
from tests.generation.engines import DIFFUSION, ENDLESS
from tests.generation.tiny import decoder, job, prompt

FORWARD_S, ROW_S = 0.002, 0.0001
TOLERANCE_S = 0.1 * (FORWARD_S + 64 * ROW_S)
"""Steps of about one size count as one size."""


class Costly(SlotModel):
    """A model whose forwards take their time on the bench's own clock."""

    def __init__(self) -> None:
        super().__init__(decoder(), slots=4, max_context=256)
        self.now = 1000.0
        self.forwards = 0

    def forward(self, batch: Many[tuple[int, Rows]]) -> Tensor:
        """The real forward, and the time that its rows cost."""
        self.forwards += 1
        self.now += cost(sum(len(rows.tokens) for _, rows in batch))
        return super().forward(batch)


class Ends(Outbox):
    """Notes when each job's end is handed over, and what it is."""

    def __init__(self, model: Costly) -> None:
        super().__init__()
        self.ends: dict[Ticket, tuple[float, Item]] = {}
        self._waiting: list[tuple[Ticket, Item]] = []
        self._model = model

    def send(self, ticket: Ticket, item: Item) -> None:
        """Keeps what ends a stream."""
        if isinstance(item, Finished | DeadlineExceeded):
            self._waiting.append((ticket, item))

    def flush(self) -> None:
        """Takes no time."""
        while self._waiting:
            ticket, item = self._waiting.pop()
            self.ends[ticket] = self._model.now, item


@dataclass(frozen=True, slots=True)
class Call:
    """A job that comes ``after`` seconds and has ``budget`` seconds."""

    after: float
    budget: float
    length: int


class Bench:
    """A step loop that has seen steps of all sizes."""

    def __init__(self) -> None:
        self.model = MODEL
        self.outbox = Ends(MODEL)
        self.line = WaitingLine(64)
        limits = EngineLimits(max_batch_size=4)
        self.loop = StepLoop(
            MODEL, DIFFUSION, ENDLESS, self.line, self.outbox, limits, lambda _: None, self.time
        )
        for rows in range(4, 300, 4):
            self.loop.clock.note(rows, cost(rows))

    def time(self) -> float:
        """Now."""
        return self.model.now

    def submit(self, asked: Job) -> Ticket:
        """Puts a job in line; raises DeadlineExceeded as the engine does."""
        if not self.loop.starts_in_time(asked):
            raise DeadlineExceeded("no time")
        ticket = Ticket(asked, lambda _: None)
        self.line.put(ticket)
        return ticket

    def serve(self, calls: list[Call]) -> list[tuple[Job, float, Item | None]]:
        """All calls as they come; each job, when it ended and how, None if refused at once."""
        coming = sorted(calls, key=lambda call: -call.after)
        began, tickets = self.model.now, list[Ticket]()
        results = list[tuple[Job, float, Item | None]]()
        while coming or self.loop.runs or len(self.line):
            while coming and began + coming[-1].after <= self.model.now:
                asked = hurried(coming.pop(), self.model.now)
                try:
                    tickets.append(self.submit(asked))
                except DeadlineExceeded:
                    results.append((asked, self.model.now, None))
            if not self.loop.step() and coming:
                self.model.now = max(self.model.now, began + coming[-1].after)
        return results + [(ticket.job, *self.outbox.ends[ticket]) for ticket in tickets]


MODEL = Costly()


def cost(rows: int) -> float:
    """Seconds of a forward."""
    return FORWARD_S + ROW_S * rows


def hurried(call: Call, now: float) -> Job:
    """Its job, for a caller that waits until then."""
    by = None if math.isinf(call.budget) else now + call.budget
    return job(prompt(call.length), 40, answer_by=by, arrived=now)


CALLS = st.lists(
    st.builds(
        Call,
        after=st.floats(0, 0.1),
        budget=st.one_of(st.just(math.inf), st.floats(0.001, 0.1)),
        length=st.integers(4, 60),
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=60, deadline=None)
@given(CALLS)
def test_nobody_hears_too_late(calls: list[Call]) -> None:
    """Whoever comes when, beside whomever: an answer or a refusal is there in time."""
    for asked, ended, _ in Bench().serve(calls):
        assert ended <= asked.expires + TOLERANCE_S


@pytest.mark.parametrize("share", [0.75, 0.5, 0.25])
def test_a_share_of_its_time_gives_an_answer(share: float) -> None:
    """What has time for one forward is answered, with as many as fit, as a best effort."""
    bench = Bench()
    began = bench.model.now
    [(_, natural_end, _)] = bench.serve([Call(0, math.inf, 20)])
    budget = share * (natural_end - began)
    [(asked, ended, item)] = bench.serve([Call(0, budget, 20)])
    assert isinstance(item, Finished)
    assert item.best_effort
    assert asked.answer_by is not None
    assert asked.answer_by - budget / 2 < ended <= asked.answer_by + TOLERANCE_S


def test_an_answer_does_not_wait_for_the_forward_of_others() -> None:
    """Out of time beside a long prefill: it ends before that, not behind it."""
    bench = Bench()
    ticket = bench.submit(hurried(Call(0, 0.0075, 8), bench.model.now))
    bench.loop.step()
    other = bench.submit(hurried(Call(0, math.inf, 60), bench.model.now))
    while ticket not in bench.outbox.ends:
        bench.loop.step()
    ended, item = bench.outbox.ends[ticket]
    assert isinstance(item, Finished)
    assert item.finish_reason is FinishReason.DEADLINE
    assert ended <= ticket.job.expires + TOLERANCE_S
    assert other not in bench.outbox.ends


def test_no_forward_is_begun_that_cannot_end_in_time() -> None:
    """A call without time for one forward is refused at once, and nothing is computed for it."""
    bench = Bench()
    before = bench.model.forwards
    with pytest.raises(DeadlineExceeded):
        bench.submit(hurried(Call(0, cost(16) / 2, 12), bench.model.now))
    assert bench.model.forwards == before


def test_a_call_behind_a_step_under_way_counts_it() -> None:
    """Time that the step under way still takes is not the newcomer's."""
    bench = Bench()
    asked = hurried(Call(0, 2 * cost(16), 12), bench.model.now)
    assert bench.loop.starts_in_time(asked)
    bench.loop.over_at = bench.model.now + 1.5 * cost(16)
    assert not bench.loop.starts_in_time(asked)
