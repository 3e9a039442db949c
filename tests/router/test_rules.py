"""Policies: what is refused as a whole, and which rule matches."""

from __future__ import annotations

import pytest
from google.protobuf.duration_pb2 import Duration

from braid.inference.v1 import inference_pb2 as pb
from braid.routing.v1.routing_pb2 import (
    GroupShare,
    Match,
    Mirror,
    Overload,
    Overrides,
    Policy,
    Route,
    Rule,
)
from services.generation.types import Priority
from services.router.builtin_policy import builtin_policy
from services.router.features import Features
from services.router.policy_compiler import PolicyError, compile_policy

TO_A = Route(groups=[GroupShare(group="a")])
TO_B = Route(groups=[GroupShare(group="b")])


def to_b(**more: object) -> Route:
    return Route(groups=[GroupShare(group="b")], **more)  # type: ignore[arg-type]


def rule(name: str, **match: object) -> Rule:
    return Rule(name=name, match=Match(**match), route=TO_A)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "policy",
    [
        Policy(rules=[rule("r")]),
        Policy(rules=[rule("r"), rule("r")], default=TO_B),
        Policy(rules=[rule("Not An Id")], default=TO_B),
        Policy(rules=[rule("default")], default=TO_B),
        Policy(rules=[Rule(name="r")], default=TO_B),
        Policy(default=Route()),
        Policy(default=Route(groups=[GroupShare(group="../b")])),
        Policy(default=Route(groups=[GroupShare(group="b", share=0)])),
        Policy(default=Route(groups=[GroupShare(group="b", share=1001)])),
        Policy(default=Route(groups=[GroupShare(group="b")], fallback=["b"])),
        Policy(rules=[rule("r", constraints=["yaml"])], default=TO_B),
        Policy(rules=[rule("r", tasks=[pb.TASK_UNSPECIFIED])], default=TO_B),
        Policy(rules=[rule("r", models=["a/b"])], default=TO_B),
        Policy(rules=[rule("r", min_new_tokens=5, max_new_tokens=4)], default=TO_B),
        Policy(rules=[rule("r", latency_budget_at_most=Duration())], default=TO_B),
        Policy(rules=[rule("r", priorities=[pb.PRIORITY_UNSPECIFIED])], default=TO_B),
        Policy(default=to_b(timeout=Duration())),
        Policy(default=to_b(hedge_after=Duration())),
        Policy(default=to_b(mirror=Mirror(group="c"))),
        Policy(default=to_b(mirror=Mirror(percent=5))),
        Policy(default=to_b(mirror=Mirror(group="c", percent=101))),
        Policy(default=to_b(mirror=Mirror(group="c", version="../v", percent=1))),
        Policy(default=to_b(queue_share=0)),
        Policy(default=to_b(queue_share=101)),
        Policy(default=to_b(overload=Overload(groups=["../c"]))),
        Policy(default=to_b(overload=Overload(overrides=Overrides(max_steps=0)))),
        Policy(default=to_b(overrides=Overrides(max_steps=0))),
        Policy(default=to_b(overrides=Overrides(max_steps=1025))),
        Policy(default=to_b(overrides=Overrides(max_new_tokens=0))),
    ],
)
def test_bad_policy_is_refused_whole(policy: Policy) -> None:
    """One bad rule makes the whole policy unusable."""
    with pytest.raises(PolicyError):
        compile_policy(policy)


@pytest.mark.parametrize(
    ("match", "yes", "no"),
    [
        ({"tasks": [pb.TASK_CHAT]}, {"task": pb.TASK_CHAT}, {"task": pb.TASK_MATH}),
        ({"models": ["m"]}, {"model": "m"}, {"model": "m2"}),
        ({"labels": {"a": "1"}}, {"labels": {"a": "1", "b": "2"}}, {"labels": {"a": "2"}}),
        ({"callers": ["c"]}, {"caller": "c"}, {"caller": ""}),
        ({"constraints": ["regex"]}, {"constraint": "regex"}, {"constraint": ""}),
        ({"min_prompt_bytes": 5}, {"prompt_bytes": 5}, {"prompt_bytes": 4}),
        ({"max_prompt_bytes": 5}, {"prompt_bytes": 5}, {"prompt_bytes": 6}),
        ({"min_new_tokens": 5}, {"max_new_tokens": 5}, {"max_new_tokens": None}),
        ({"max_new_tokens": 5}, {"max_new_tokens": 5}, {"max_new_tokens": 6}),
        (
            {"priorities": [pb.PRIORITY_BATCH]},
            {"priority": Priority.BATCH},
            {"priority": Priority.NORMAL},
        ),
        (
            {"latency_budget_at_most": Duration(seconds=1)},
            {"latency_budget_s": 1.0},
            {"latency_budget_s": None},
        ),
    ],
)
def test_each_condition(
    match: dict[str, object], yes: dict[str, object], no: dict[str, object]
) -> None:
    """Every condition of a rule holds for what it names and for nothing else."""
    rules = compile_policy(Policy(rules=[rule("r", **match)], default=TO_B))
    base: dict[str, object] = {"task": pb.TASK_CHAT}
    assert rules.match(Features(**{**base, **yes})).name == "r"  # type: ignore[arg-type]
    other = Features(**{**base, **no})  # type: ignore[arg-type]
    assert rules.match(other).name == "default"
    assert rules.rules[0].failing(other) in next(iter(match))


def test_all_conditions_must_hold() -> None:
    """A rule matches only where each of its conditions does."""
    both = rule("r", tasks=[pb.TASK_CHAT], models=["m"])
    rules = compile_policy(Policy(rules=[both], default=TO_B))
    assert rules.match(Features(pb.TASK_CHAT, model="m")).name == "r"
    assert rules.match(Features(pb.TASK_CHAT)).name == "default"


def test_first_match_decides() -> None:
    """The order of the rules decides between two that match."""
    rules = compile_policy(Policy(rules=[rule("one"), rule("two")], default=TO_B))
    assert rules.match(Features(pb.TASK_CHAT)).name == "one"


@pytest.mark.parametrize(
    ("task", "group"),
    [
        (pb.TASK_CODE_COMPLETION, "diffusion"),
        (pb.TASK_STRUCTURED_OUTPUT, "diffusion"),
        (pb.TASK_TEXT_EDITING, "diffusion"),
        (pb.TASK_ACTION_CONTROL, "diffusion"),
        (pb.TASK_REASONING, "ar"),
        (pb.TASK_MATH, "ar"),
        (pb.TASK_CHAT, "ar"),
        (pb.TASK_TEXT_GENERATION, "ar"),
    ],
)
def test_builtin_policy_by_task(task: pb.Task, group: str) -> None:
    """The built-in policy sends each task to the paradigm that does it best."""
    route = compile_policy(builtin_policy()).match(Features(task)).route
    assert route.groups == ((group, 1),)


def test_builtin_policy_low_latency() -> None:
    """A chat that cannot wait goes to the paradigm that decodes in parallel; maths does not."""
    rules = compile_policy(builtin_policy())
    hurried = rules.match(Features(pb.TASK_CHAT, latency_budget_s=0.5))
    assert (hurried.name, hurried.route.groups) == ("low-latency", (("diffusion", 1),))
    assert rules.match(Features(pb.TASK_MATH, latency_budget_s=0.5)).name == "reasoning"
