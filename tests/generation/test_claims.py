"""Who shares a forward."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from services.generation.claims import PATIENCE, Claim, Room, choose, lost

ROOM = Room(sequences=4, rows=100)
CLAIMS = st.lists(
    st.builds(
        Claim,
        rows=st.integers(1, 60),
        latest=st.one_of(st.just(math.inf), st.floats(130, 500)),
        begun=st.booleans(),
        passed_over=st.integers(0, PATIENCE + 1),
    ),
    min_size=1,
    max_size=8,
)
"""Each has time for a forward of its own."""


def expect(rows: int, surely: bool = False) -> float:
    """A second a row, two where it must not take longer."""
    return rows * (2.0 if surely else 1.0)


@given(CLAIMS)
def test_a_forward_holds_what_it_may(claims: list[Claim]) -> None:
    """There is always one sequence, and never more of them or of their rows than fit."""
    chosen = choose(claims, ROOM, 0.0, expect)
    assert 1 <= len(chosen) <= ROOM.sequences
    assert len(chosen) == 1 or sum(claims[i].rows for i in chosen) <= ROOM.rows


@given(CLAIMS)
def test_company_makes_nobody_late(claims: list[Claim]) -> None:
    """Whoever shares a forward surely has its end in time."""
    chosen = choose(claims, ROOM, 0.0, expect)
    over = expect(sum(claims[i].rows for i in chosen), len(chosen) > 1)
    assert all(over <= claims[i].latest for i in chosen)


@given(CLAIMS)
def test_without_hurry_the_first_go_first(claims: list[Claim]) -> None:
    """Where all have time to wait, order and room alone decide."""
    calm = [Claim(claim.rows) for claim in claims]
    chosen = choose(calm, ROOM, 0.0, expect)
    assert chosen[0] == 0
    for i in set(range(max(chosen))) - set(chosen):
        assert sum(calm[j].rows for j in chosen if j < i) + calm[i].rows > ROOM.rows


@given(CLAIMS)
def test_nobody_is_passed_over_for_ever(claims: list[Claim]) -> None:
    """Who has waited long enough comes before all that are in a hurry."""
    overdue = [i for i, claim in enumerate(claims) if claim.passed_over >= PATIENCE]
    assert not overdue or overdue[0] in choose(claims, ROOM, 0.0, expect)


def test_a_prefill_does_not_start_before_a_last_forward() -> None:
    """Who has time for one short forward gets it alone; the others come with the next one."""
    hurried, prompt = Claim(16, latest=40.0, begun=True), Claim(60)
    assert choose([prompt, hurried], ROOM, 0.0, expect) == [1]


def test_who_will_have_no_time_is_known_before() -> None:
    """Left out of a forward and out of time behind it: that is said at once."""
    claims = [Claim(20, latest=50.0), Claim(20, latest=55.0), Claim(20, latest=90.0), Claim(20)]
    chosen = choose(claims, ROOM, 0.0, expect)
    assert chosen == [0]
    assert lost(claims, chosen, 0.0, expect) == [1]
