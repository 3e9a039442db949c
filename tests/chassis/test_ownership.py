"""Who may hold a key."""

from __future__ import annotations

import pytest

from services.chassis.entries import Entry, TimeToLive
from services.chassis.ownership import Claim, claim, is_alive, sight

OURS, FORMER, RIVAL = 1, 2, 3


@pytest.mark.parametrize(
    ("lease_on_key", "rivals", "expected"),
    [
        (None, set(), Claim.TAKE),
        (OURS, set(), Claim.HELD),
        (FORMER, set(), Claim.TAKE),
        (0, set(), Claim.TAKE),
        (RIVAL, set(), Claim.TAKE),
        (RIVAL, {RIVAL}, Claim.LEAVE),
        (FORMER, {FORMER}, Claim.TAKE),
    ],
)
def test_claim(lease_on_key: int | None, rivals: set[int], expected: Claim) -> None:
    """A lost key is taken back, from a rival once only: a rival that answers is alive."""
    entry = None if lease_on_key is None else Entry("k", b"", 1, lease_on_key)
    assert claim(entry, OURS, {OURS, FORMER}, rivals) is expected


def test_occupant_that_fades() -> None:
    """A lease that nobody renews is let run out."""
    seen = sight(RIVAL, TimeToLive(9, 10), now=100.0)
    assert not is_alive(seen, RIVAL, TimeToLive(5, 10), now=104.0)
    assert not is_alive(seen, RIVAL, TimeToLive(0, 10), now=110.5)


def test_occupant_that_lives() -> None:
    """A lease that gained life, outlived its term, or gave way to another has an owner."""
    seen = sight(RIVAL, TimeToLive(6, 10), now=100.0)
    assert is_alive(seen, RIVAL, TimeToLive(9, 10), now=101.0)
    assert is_alive(seen, RIVAL, TimeToLive(6, 10), now=110.0)
    assert is_alive(seen, 4, TimeToLive(1, 10), now=101.0)
