"""Explain: every candidate with what became of it."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from google.protobuf.duration_pb2 import Duration

from braid.config.v1.config_pb2 import Group
from braid.inference.v1 import inference_pb2 as pb
from braid.routing.v1.routing_pb2 import GroupShare, Overrides, Policy, Route
from services.router.explanation import explain
from services.router.features import Features
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


def test_rules_passed_say_what_was_in_the_way() -> None:
    """Each rule before the one that matched is named with the condition that failed."""
    explained = explain(Features(pb.TASK_TEXT_EDITING), table(node("w1")), Random(0))
    assert explained.rule == "text-editing"
    passed = [(rule.rule, rule.condition) for rule in explained.passed_rules]
    assert passed == [("code-completion", "tasks"), ("structured-output", "tasks")]


def test_shape_of_the_call_is_shown() -> None:
    """Timeout and overrides of the rule are shown as they hold for the node chosen."""
    route = Route(
        groups=[GroupShare(group="diffusion")],
        timeout=Duration(seconds=2),
        overrides=Overrides(max_steps=8, max_new_tokens=64),
    )
    known = table(node("w1"), policy=Policy(default=route))
    known = replace(known, records={"diffusion": Group(group="diffusion", max_steps=4)})
    explained = explain(code(max_new_tokens=32), known, Random(0))
    assert explained.timeout == Duration(seconds=2)
    assert explained.overrides == Overrides(max_steps=4)


def test_candidates_are_compared_by_score() -> None:
    """The score is the wait for a weight of 100, so a light node needs to wait less."""
    known = table(node("w1", pending=10), node("w2", pending=10, weight=50))
    explained = explain(code(), known, Random(0))
    scores = {candidate.node_id: candidate.score for candidate in explained.candidates}
    assert scores["w2"] == 2 * scores["w1"] > 0


def test_version_shares_are_chances() -> None:
    """The share of each version that could be drawn is shown, as a part of one."""
    known = table(
        node("w1"), node("w2", version="v2"), traffic={"m": {"v1": 95, "v2": 5, "v3": 900}}
    )
    assert dict(explain(code(), known, Random(0)).version_shares) == {"v1": 0.95, "v2": 0.05}


def test_full_node_says_that_the_call_would_wait() -> None:
    """Where the node chosen has no room, that is part of its reason."""
    explained = explain(code(), table(node("w1", slots=1, running=2)), Random(0))
    assert [c.reason for c in explained.candidates] == ["chosen, and full: the call would wait"]


def test_failure_says_why() -> None:
    """Where no node can serve, the failure and each node's reason are shown."""
    explained = explain(code(), table(node("w1", reason="draining")), Random(0))
    assert not explained.node_id
    assert "1 x draining" in explained.failure
    assert [c.reason for c in explained.candidates] == ["draining"]
