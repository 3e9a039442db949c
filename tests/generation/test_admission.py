"""The line in front of the engine."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.chassis.errors import QueueFull
from services.generation.admission import HANDICAP_S, WaitingLine
from services.generation.ticket import Ticket
from services.generation.types import Priority
from tests.generation.tiny import job


def ticket(arrived: float = 0.0, priority: Priority = Priority.NORMAL, **changes: Any) -> Ticket:
    return Ticket(job(arrived=arrived, priority=priority, **changes), on_close=lambda _: None)


def order(line: WaitingLine) -> list[Ticket]:
    taken = []
    while (next_one := line.take(0.0)) is not None:
        taken.append(next_one)
    return taken


async def test_urgent_work_goes_first() -> None:
    """Of jobs that came together, interactive ones go before normal before batch ones."""
    line = WaitingLine(8)
    batch, normal, interactive = (ticket(priority=p) for p in reversed(Priority))
    for each in (batch, normal, interactive):
        line.put(each)
    assert order(line) == [interactive, normal, batch]


async def test_equals_keep_their_order() -> None:
    """Jobs of one priority go in the order in which they came."""
    line = WaitingLine(8)
    tickets = [ticket() for _ in range(5)]
    for each in tickets:
        line.put(each)
    assert order(line) == tickets


@given(later=st.floats(min_value=0.1, max_value=1000))
async def test_nothing_waits_for_ever(later: float) -> None:
    """A batch job goes before an interactive one that came its handicap later."""
    line = WaitingLine(8)
    interactive = ticket(HANDICAP_S[Priority.BATCH] + later, Priority.INTERACTIVE)
    batch = ticket(0.0, Priority.BATCH)
    line.put(interactive)
    line.put(batch)
    assert order(line) == [batch, interactive]


async def test_a_full_line_refuses_and_says_when_to_come_back() -> None:
    """QueueFull comes at once; its delay follows the pace at which jobs leave."""
    line = WaitingLine(4)
    for _ in range(4):
        line.put(ticket())
    for second in (0.0, 2.0):
        line.take(second)
        line.put(ticket())
    for second in range(4, 80, 2):
        line.take(float(second))
        line.put(ticket())
    with pytest.raises(QueueFull) as refused:
        line.put(ticket())
    assert refused.value.retry_after_s == pytest.approx(4.0, rel=0.1)
    assert len(line) == 4


async def test_cancelled_jobs_leave_at_once() -> None:
    """A cancelled job frees its place and never comes out."""
    line = WaitingLine(2)
    first, second, third = ticket(), ticket(), ticket()
    line.put(first)
    line.put(second)
    assert line.discard(first)
    assert not line.discard(first)
    line.put(third)
    assert len(line) == 2
    assert order(line) == [second, third]


async def test_batch_jobs_are_passed_by_where_they_may_not_run() -> None:
    """Where only urgent work is wanted, batch jobs keep their place."""
    line = WaitingLine(8)
    first, second = (ticket(number, Priority.BATCH) for number in range(2))
    line.put(first)
    line.put(second)
    assert line.take(0.0, offline=False) is None
    normal = ticket(1000.0)
    line.put(normal)
    assert line.take(0.0, offline=False) is normal
    assert order(line) == [first, second]


async def test_thousands_of_cancelled_jobs_leave_nothing_behind() -> None:
    """The line's memory does not grow with jobs that came and went."""
    line = WaitingLine(10_000)
    for _ in range(5000):
        gone = ticket()
        line.put(gone)
        line.discard(gone)
    assert len(line._heap) < 20


async def test_jobs_expire_in_the_line() -> None:
    """A job past its deadline or its answer's time comes out as expired, not as work."""
    line = WaitingLine(8)
    late, budget_spent, fine = ticket(deadline=5.0), ticket(answer_by=4.0), ticket(deadline=9.0)
    for each in (late, budget_spent, fine):
        line.put(each)
    assert line.expired(lambda job: job.expires > 3.0) == []
    assert set(line.expired(lambda job: job.expires > 5.0)) == {late, budget_spent}
    assert order(line) == [fine]


async def test_waiting_tokens_are_counted() -> None:
    """The line knows how many answer tokens it may be asked for."""
    line = WaitingLine(8)
    line.put(ticket(max_new_tokens=5))
    line.put(ticket(max_new_tokens=7))
    assert line.tokens == 12
