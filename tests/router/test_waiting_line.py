"""The line in front of a group: its order, its bounds, and who has to leave it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.router.waiting_line import LineFull, Turn, WaitingLine

ARRIVALS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 5), st.sampled_from("ab")), max_size=30
)


def turn(number: int, priority: int = 1, ends_at: float = 10.0, rule: str = "r") -> Turn[str]:
    """A turn of one forward pass."""
    return Turn(priority, ends_at, number, rule, 1.0, f"t{number}")


@given(ARRIVALS)
def test_order_and_bounds(arrivals: list[tuple[int, int, str]]) -> None:
    """By class, then by deadline, then by arrival; never more than fit, none of a rule's over."""
    line: WaitingLine[str] = WaitingLine(5)
    for number, (priority, ends_at, rule) in enumerate(arrivals):
        before = len(line)
        try:
            displaced = line.put(turn(number, priority, ends_at, rule), share=0.6)
        except LineFull:
            assert len(line) == before
            continue
        if displaced:
            assert before == len(line) == 5
            assert displaced.priority > priority
    turns = list(line)
    assert turns == sorted(turns, key=lambda one: (one.priority, one.ends_at, one.number))
    assert len(turns) <= 5
    assert all(sum(one.rule == rule for one in turns) <= 3 for rule in "ab")


def test_more_urgent_class_makes_the_last_one_leave() -> None:
    """In a full line a higher class takes the place of the last turn; its own class does not."""
    line: WaitingLine[str] = WaitingLine(2)
    batch, normal = turn(1, priority=2), turn(2, priority=1)
    line.put(batch)
    line.put(normal)
    with pytest.raises(LineFull):
        line.put(turn(3, priority=2, ends_at=1.0))
    assert line.put(turn(4, priority=1)) is batch
    with pytest.raises(LineFull):
        line.put(turn(5, priority=1, ends_at=1.0))
    assert line.put(turn(6, priority=0)) is not None


def test_no_line_at_all() -> None:
    """A line of length 0 takes nobody."""
    with pytest.raises(LineFull):
        WaitingLine[str](0).put(turn(1))


def test_a_turn_leaves_once() -> None:
    """Taking a turn out twice does nothing the second time, and frees its rule's share once."""
    line: WaitingLine[str] = WaitingLine(4)
    first = turn(1)
    line.put(first, share=0.25)
    assert (line.remove(first), line.remove(first)) == (True, False)
    line.put(turn(2), share=0.25)
    with pytest.raises(LineFull):
        line.put(turn(3), share=0.25)


def test_work_ahead() -> None:
    """A new turn waits for its own class's earlier deadlines and for every higher class."""
    line: WaitingLine[str] = WaitingLine(9)
    for number, (priority, ends_at) in enumerate([(0, 9.0), (1, 5.0), (1, 15.0), (2, 1.0)]):
        line.put(turn(number, priority, ends_at))
    assert [line.ahead_of(priority, 10.0) for priority in (0, 1, 2)] == [1, 2, 4]
