"""How far a node is trusted: failures in a row, their share, and growing ejections."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.router.node_health import (
    FEWEST,
    FIRST_EJECTION_S,
    IN_A_ROW,
    LONGEST_EJECTION_S,
    WINDOW,
    NodeHealth,
    Phase,
)


def after(outcomes: str) -> NodeHealth:
    """Health after outcomes, "x" a failure and anything else a success."""
    health = NodeHealth()
    for outcome in outcomes:
        (health.failed if outcome == "x" else health.succeeded)()
    return health


@pytest.mark.parametrize(
    ("outcomes", "suspect"),
    [
        ("", False),
        ("x" * (IN_A_ROW - 1), False),
        ("x" * IN_A_ROW, True),
        ("xxxx.xxxx.", True),
        (".x" * (FEWEST // 2 - 1), False),
        (".x" * (FEWEST // 2), True),
        ("..x" * WINDOW, False),
        ("x." * WINDOW + "." * WINDOW, False),
    ],
)
def test_when_a_node_is_suspect(outcomes: str, suspect: bool) -> None:
    """Failures in a row, or half of the latest outcomes, make a node suspect; older ones do not."""
    assert after(outcomes).suspect is suspect


@given(st.lists(st.booleans(), max_size=60))
def test_suspicion_is_as_counted(outcomes: list[bool]) -> None:
    """The verdict is that of counting the latest outcomes one by one."""
    text = "".join("x" if failed else "." for failed in outcomes)
    latest = text[-WINDOW:]
    by_share = len(latest) >= FEWEST and 2 * latest.count("x") >= len(latest)
    assert after(text).suspect == (text.endswith("x" * IN_A_ROW) or by_share)


def test_ejections_grow_up_to_a_limit() -> None:
    """A node whose probe fails each time is ejected twice as long each time, within a limit."""
    health, now, spans = NodeHealth(), 100.0, []
    for _ in range(8):
        spans.append(health.eject(now))
        now += spans[-1]
        health.half_open()
    assert spans[:3] == [FIRST_EJECTION_S, 2 * FIRST_EJECTION_S, 4 * FIRST_EJECTION_S]
    assert spans[-1] == LONGEST_EJECTION_S


def test_relapse_counts_and_a_steady_time_forgets() -> None:
    """A node that fails soon after it was trusted again is ejected longer, later on not."""
    health = NodeHealth()
    health.eject(0.0)
    health.trust(2.0)
    assert health.eject(3.0) == 2 * FIRST_EJECTION_S
    health.trust(10.0)
    assert health.eject(10.0 + 2 * FIRST_EJECTION_S) == FIRST_EJECTION_S


def test_trust_forgets_what_came_before() -> None:
    """A node that is trusted again starts without failures."""
    health = after("x" * IN_A_ROW)
    health.eject(0.0)
    health.half_open()
    health.trust(2.0)
    assert (health.phase, health.suspect) == (Phase.TRUSTED, False)
