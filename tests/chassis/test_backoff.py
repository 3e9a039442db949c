"""Waiting between attempts."""

from __future__ import annotations

from itertools import accumulate
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from services.chassis.backoff import Backoff


def test_first_wait_is_short_and_the_others_about_a_second() -> None:
    """A single fault costs little time; going on failing costs about a second a time."""
    backoff = Backoff(Random(1))
    waits = [backoff.next() for _ in range(6)]
    assert waits[0] < 0.2
    assert all(0.7 < wait < 1.3 for wait in waits[2:])


def test_short_again_after_a_long_life() -> None:
    """An attempt that held for a while starts the waits over."""
    backoff = Backoff(Random(1))
    for _ in range(5):
        backoff.next()
    assert backoff.next(lasted_s=60) < 0.2


@given(st.integers(0, 2**32), st.lists(st.floats(0, 1.9), min_size=8, max_size=8))
def test_under_five_calls_a_second(seed: int, lasted: list[float]) -> None:
    """Two calls an attempt stay under five in any second, however soon attempts fail."""
    backoff = Backoff(Random(seed))
    starts = list(accumulate((backoff.next(life) + life for life in lasted), initial=0.0))[1:]
    for first in starts:
        assert 2 * sum(first <= start < first + 1.0 for start in starts) < 5
