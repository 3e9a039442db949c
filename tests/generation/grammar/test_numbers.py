"""Numbers between bounds, against arithmetic."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.generation.grammar.numbers import Bound, NotRegular, decimals, integers
from tests.generation.grammar.automata import accepts, automaton_of

ends = st.none() | st.integers(-1200, 1200)
bounds = st.none() | st.builds(
    Bound, st.integers(-3000, 3000).map(lambda n: Decimal(n) / 100), st.booleans()
)


def holds(value: Decimal, least: Bound | None, most: Bound | None) -> bool:
    above = least is None or value > least.value or (least.inclusive and value == least.value)
    return above and (
        most is None or value < most.value or (most.inclusive and value == most.value)
    )


@given(ends, ends)
@settings(max_examples=60, deadline=None)
def test_integers_are_those_between_the_bounds(least: int | None, most: int | None) -> None:
    """Every whole number near and far is in the language exactly if it is in the interval."""
    language = integers(least, most)
    automaton = automaton_of(language) if language else None
    for value in (*range(-1300, 1301, 7), *(b for b in (least, most) if b is not None), 10**30):
        inside = (least is None or value >= least) and (most is None or value <= most)
        assert (automaton is not None and accepts(automaton, str(value))) is inside


@given(bounds, bounds, st.lists(st.integers(-3100, 3100), min_size=20, max_size=20))
@settings(max_examples=80, deadline=None)
def test_decimals_are_those_between_the_bounds(
    least: Bound | None, most: Bound | None, hundredths: list[int]
) -> None:
    """The same for decimals, with values that touch the bounds."""
    language = decimals(least, most)
    automaton = automaton_of(language) if language else None
    near = [b.value + Decimal(step) / 1000 for b in (least, most) if b for step in (-1, 0, 1)]
    for value in (*(Decimal(n) / 100 for n in hundredths), *near):
        text = f"{value:f}".lstrip("-") if value == 0 else f"{value:f}"
        got = automaton is not None and accepts(automaton, text)
        assert got is holds(value, least, most)


@pytest.mark.parametrize("text", ["01", "-0", "+1", "1.", ".5", "1e3", "-", "", "1 ", "0x1"])
def test_numbers_have_one_plain_spelling(text: str) -> None:
    """What JSON does not allow, and exponents, are not written."""
    assert not accepts(automaton_of(decimals()), text)
    assert not accepts(automaton_of(integers()), text)


@pytest.mark.parametrize(
    ("least", "most", "step"),
    [(None, None, 5), (0, None, 20), (1, None, 25), (None, 0, 2), (None, -1, 10), (-50, 700, 7)],
)
def test_multiples(least: int | None, most: int | None, step: int) -> None:
    """Multiples by their last digits, or one by one between bounds."""
    automaton = automaton_of(integers(least, most, step))
    for value in range(-800, 801):
        inside = (least is None or value >= least) and (most is None or value <= most)
        assert accepts(automaton, str(value)) is (inside and value % step == 0)


@pytest.mark.parametrize(("least", "most", "step"), [(None, None, 7), (5, None, 10), (0, 10**6, 3)])
def test_multiples_that_no_expression_of_bearable_size_tells(
    least: int | None, most: int | None, step: int
) -> None:
    """They are refused."""
    with pytest.raises(NotRegular):
        integers(least, most, step)
