"""How long steps are expected to take."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.generation.step_clock import StepClock

ROWS = st.integers(1, 1024)
SECONDS = st.floats(1e-4, 10)
STEPS = st.lists(st.tuples(ROWS, SECONDS), min_size=1, max_size=60)


def clock_of(steps: list[tuple[int, float]]) -> StepClock:
    """A clock that has seen these steps."""
    clock = StepClock()
    for rows, seconds in steps:
        clock.note(rows, seconds)
    return clock


def test_a_clock_without_steps_knows_nothing() -> None:
    """Before the first step nothing is refused for want of time."""
    clock = StepClock()
    assert clock.expect(100) == clock.expect(100, surely=True) == 0
    assert clock.forwards(1.0, 100, 16) is None


@given(STEPS, ROWS, ROWS)
def test_more_rows_never_take_less_time(steps: list[tuple[int, float]], one: int, two: int) -> None:
    """What is expected grows with the rows, whatever was measured."""
    clock = clock_of(steps)
    assert 0 < clock.expect(min(one, two)) <= clock.expect(max(one, two))


@given(STEPS, ROWS)
def test_the_sure_time_is_the_longer_one(steps: list[tuple[int, float]], rows: int) -> None:
    """What is hardly ever exceeded is at least what is usual."""
    clock = clock_of(steps)
    assert clock.expect(rows) <= clock.expect(rows, surely=True)


def test_times_between_sizes_lie_on_a_line() -> None:
    """A size that was never seen is judged by its neighbours, beyond the largest in proportion."""
    clock = clock_of([(16, 0.01), (64, 0.03)] * 5)
    assert clock.expect(40) == pytest.approx(0.02)
    assert clock.expect(128) == pytest.approx(0.06)


def test_one_long_step_changes_the_sure_time_alone() -> None:
    """The usual time is a median; how far steps go beyond it is learnt apart."""
    steady = [(16, 0.01)] * 40
    assert clock_of([*steady, *[(16, 0.03)] * 5]).expect(16) == pytest.approx(0.01)
    assert clock_of(steady).expect(16, surely=True) == pytest.approx(0.01)
    assert clock_of([*steady, *[(16, 0.03)] * 5]).expect(16, surely=True) == pytest.approx(0.03)


def test_refusals_undo_what_they_rest_on() -> None:
    """A clock that has everything refused forgets, until something is tried again."""
    clock = clock_of([(16, 5.0)] * 100)
    for _ in range(100):
        clock.doubt(16)
    assert clock.expect(16) == 0


@given(STEPS, st.floats(-1, 20), ROWS, ROWS)
def test_planned_forwards_fit(
    steps: list[tuple[int, float]], seconds: float, first: int, later: int
) -> None:
    """All forwards but the next one are surely over by then; there is always one."""
    clock = clock_of(steps)
    forwards = clock.forwards(seconds, first, later)
    assert forwards is not None
    assert forwards >= 1
    if forwards > 1:
        usual = clock.expect(first) + (forwards - 2) * clock.expect(later)
        assert usual + clock.expect(later, surely=True) <= seconds * (1 + 1e-9)
