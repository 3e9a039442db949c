"""The retry budget: a part of the traffic."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.router.retry_budget import RESERVE, SHARE, RetryBudget


@given(st.lists(st.booleans(), max_size=400))
def test_retries_stay_within_their_share(events: list[bool]) -> None:
    """Whatever the order of calls and retries, the latter are at most a fifth and a reserve."""
    budget, calls, retries = RetryBudget(), 0, 0
    for is_call in events:
        if is_call:
            budget.deposit()
            calls += 1
        else:
            retries += budget.withdraw()
    assert retries <= RESERVE + SHARE * calls + 1e-9
    assert 0 <= budget.balance <= RESERVE


def test_quiet_traffic_saves_no_storm_up() -> None:
    """However many calls went well, the retries that may come at once are limited."""
    budget = RetryBudget()
    for _ in range(10_000):
        budget.deposit()
    assert sum(budget.withdraw() for _ in range(10_000)) == RESERVE
