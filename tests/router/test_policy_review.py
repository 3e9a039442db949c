"""What is doubtful in a policy or in traffic shares, and is in force all the same."""

from __future__ import annotations

import pytest
from google.protobuf.duration_pb2 import Duration
from hypothesis import given
from hypothesis import strategies as st

from braid.config.v1.config_pb2 import Group
from braid.inference.v1 import inference_pb2 as pb
from braid.routing.v1.routing_pb2 import GroupShare, Match, Overrides, Policy, Route, Rule
from services.router.builtin_policy import builtin_policy
from services.router.features import Features
from services.router.findings import findings_of
from services.router.policy_compiler import compile_policy
from services.router.policy_review import (
    covers,
    review_against,
    review_policy,
    review_traffic,
)
from tests.router.tables import node, table

TO_A = Route(groups=[GroupShare(group="a")])
MATCHES = st.builds(
    lambda tasks, models, labels, low, high, budget: Match(
        tasks=tasks,
        models=models,
        labels=labels,
        min_prompt_bytes=low,
        max_prompt_bytes=high,
        latency_budget_at_most=budget and Duration(seconds=budget),
    ),
    st.sets(st.sampled_from([pb.TASK_CHAT, pb.TASK_MATH])),
    st.sets(st.sampled_from(["m", "n"])),
    st.dictionaries(st.just("a"), st.sampled_from(["1", "2"])),
    st.one_of(st.none(), st.integers(0, 1)),
    st.one_of(st.none(), st.integers(2, 3)),
    st.one_of(st.none(), st.integers(1, 2)),
)
FEATURES = st.builds(
    lambda task, model, label, prompt, budget: Features(
        task, model=model, labels=label, prompt_bytes=prompt, latency_budget_s=budget
    ),
    st.sampled_from([pb.TASK_CHAT, pb.TASK_MATH]),
    st.sampled_from(["m", "n", ""]),
    st.dictionaries(st.just("a"), st.sampled_from(["1", "2"])),
    st.integers(0, 4),
    st.one_of(st.none(), st.sampled_from([0.5, 1.5, 3.0])),
)


@given(wide=MATCHES, narrow=MATCHES, features=FEATURES)
def test_covered_rule_never_decides(wide: Match, narrow: Match, features: Features) -> None:
    """A rule behind one that covers it is never the one that matches."""
    rules = [Rule(name=name, match=m, route=TO_A) for name, m in (("w", wide), ("n", narrow))]
    policy = Policy(rules=rules, default=TO_A)
    if covers(wide, narrow):
        assert compile_policy(policy).match(features).name != "n"
        assert [doubt.rule for doubt in review_policy(policy)] == ["n"]


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        (Match(), Match(tasks=[pb.TASK_CHAT])),
        (Match(tasks=[pb.TASK_CHAT, pb.TASK_MATH]), Match(tasks=[pb.TASK_CHAT], models=["m"])),
        (Match(min_new_tokens=5), Match(min_new_tokens=6, max_new_tokens=9)),
        (
            Match(latency_budget_at_most=Duration(seconds=2)),
            Match(latency_budget_at_most=Duration(seconds=1)),
        ),
        (Match(labels={"a": "1"}), Match(labels={"a": "1", "b": "2"})),
    ],
)
def test_wider_match_covers_the_narrower(wide: Match, narrow: Match) -> None:
    """What one matches the other matches too, and not the other way round."""
    assert covers(wide, narrow)
    assert not covers(narrow, wide)


def test_builtin_policy_has_no_doubts() -> None:
    """The built-in policy has no rule that never matches and no odd share."""
    assert not list(review_policy(builtin_policy()))


def test_groups_that_nobody_is_in() -> None:
    """A group without a node and without a record is doubtful, wherever it is named."""
    policy = Policy(default=Route(groups=[GroupShare(group="a")], fallback=["b", "c"]))
    doubts = list(review_against(policy, {"a"}, {"b": Group(group="b")}))
    assert [doubt.description for doubt in doubts] == ["group c has no node and no record"]


def test_overrides_over_the_groups_cap() -> None:
    """An override that a group will not grant is doubtful."""
    policy = Policy(default=Route(groups=TO_A.groups, overrides=Overrides(max_steps=32)))
    (doubt,) = review_against(policy, {"a"}, {"a": Group(group="a", max_steps=16)})
    assert "32 is over the 16" in doubt.description


@pytest.mark.parametrize(
    ("shares", "doubts"),
    [
        ({"v1": 95, "v2": 5}, 0),
        ({"v1": 1}, 0),
        ({"v1": 90, "v2": 5}, 1),
        ({"v1": 0, "v2": 0}, 1),
        ({"v1": 90, "v9": 10}, 1),
    ],
)
def test_doubtful_traffic(shares: dict[str, int], doubts: int) -> None:
    """Shares that do not add up, are all 0 or are of a version without a node are doubtful."""
    assert len(list(review_traffic(shares, {"v1", "v2"}))) == doubts


def test_shares_of_groups_that_do_not_add_up() -> None:
    """Shares of groups that are given and make no whole are doubtful, and count as parts."""
    groups = [GroupShare(group="a", share=90), GroupShare(group="b", share=5)]
    policy = Policy(default=Route(groups=groups))
    assert "add up to 95" in next(review_policy(policy)).description
    assert not list(review_policy(Policy(default=Route(groups=[GroupShare(group="a")]))))


def test_findings_are_listed_by_key() -> None:
    """Doubts about a table name the key to mend; the policy is in force all the same."""
    policy = Policy(default=Route(groups=[GroupShare(group="nobody")]))
    known = table(node("w1"), policy=policy, traffic={"m": {"v1": 90, "v2": 10}})
    assert [finding.key for finding in findings_of(known)] == [
        "/braid/policy",
        "/braid/traffic/m",
    ]
    assert known.policy.rules.match(Features(pb.TASK_CHAT)).route.groups == (("nobody", 1),)
