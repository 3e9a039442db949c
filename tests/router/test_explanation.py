"""Explain: every candidate with what became of it."""

from __future__ import annotations

from random import Random

from services.router.explanation import explain
from tests.router.tables import code, node, table


def test_every_candidate_has_a_reason() -> None:
    """Each node of the groups the rule names says why it was or was not taken."""
    known = table(
        node("chosen"),
        node("heavy", weight=0),
        node("lost", reason="does not answer"),
        node("old", version="v0"),
        node("unable", capabilities=()),
        node("elsewhere", "ar"),
        node("stranger", "other"),
        traffic={"m": {"v1": 1}},
    )
    explained = explain(code(needs=frozenset({"infill"})), known, Random(0))
    assert (explained.rule, explained.node_id) == ("code-completion", "chosen")
    assert {c.node_id: (c.eligible, c.reason) for c in explained.candidates} == {
        "chosen": (True, "chosen"),
        "heavy": (False, "weight is 0"),
        "lost": (False, "does not answer"),
        "old": (False, "its version has no traffic share"),
        "unable": (False, "cannot do infill"),
        "elsewhere": (True, "group diffusion was chosen"),
    }


def test_version_shares_are_chances() -> None:
    """The share of each version that could be drawn is shown, as a part of one."""
    known = table(
        node("w1"), node("w2", version="v2"), traffic={"m": {"v1": 95, "v2": 5, "v3": 900}}
    )
    assert dict(explain(code(), known, Random(0)).version_shares) == {"v1": 0.95, "v2": 0.05}


def test_failure_says_why() -> None:
    """Where no node can serve, the failure and each node's reason are shown."""
    explained = explain(code(), table(node("w1", reason="draining")), Random(0))
    assert not explained.node_id
    assert "1 x draining" in explained.failure
    assert [c.reason for c in explained.candidates] == ["draining"]
