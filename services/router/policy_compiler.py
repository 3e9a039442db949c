"""From the policy as stored to rules: checked as a whole, refused as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message

from braid.inference.v1 import inference_pb2
from braid.routing.v1 import routing_pb2
from services.chassis.ids import FORM, is_id
from services.generation.types import Priority
from services.router.features import Features
from services.router.overrides import Overrides
from services.router.rules import DEFAULT_RULE, Condition, Mirror, Overload, Route, Rule, RuleSet

CONSTRAINTS = frozenset({"json_schema", "regex", "choice", "template"})
SHARE_LIMIT = 1000
STEPS_LIMIT = 1024
TASKS = frozenset(inference_pb2.Task.values()) - {inference_pb2.TASK_UNSPECIFIED}
PRIORITIES = {
    inference_pb2.PRIORITY_INTERACTIVE: Priority.INTERACTIVE,
    inference_pb2.PRIORITY_NORMAL: Priority.NORMAL,
    inference_pb2.PRIORITY_BATCH: Priority.BATCH,
}


class PolicyError(ValueError):
    """The policy cannot be used; the message says which rule and why."""


def compile_policy(policy: routing_pb2.Policy) -> RuleSet:
    """Checks the whole policy and compiles it. Raises PolicyError."""
    if not policy.HasField("default"):
        raise PolicyError("default: must be set")
    names = set()
    for rule in policy.rules:
        if not is_id(rule.name) or rule.name == DEFAULT_RULE:
            raise PolicyError(f"rule name {rule.name[:80]!r}: {FORM}, and not be 'default'")
        if rule.name in names:
            raise PolicyError(f"rule {rule.name}: the name is used twice")
        names.add(rule.name)
    return RuleSet([_rule(rule) for rule in policy.rules], _route(policy.default, DEFAULT_RULE))


def _rule(rule: routing_pb2.Rule) -> Rule:
    _check_match(rule.match, rule.name)
    return Rule(rule.name, _route(rule.route, rule.name), tuple(_conditions(rule.match, rule.name)))


def _check_match(match: routing_pb2.Match, rule: str) -> None:
    if not TASKS.issuperset(match.tasks):
        raise PolicyError(f"rule {rule}: match.tasks: not a task of this version")
    if not CONSTRAINTS.issuperset(match.constraints):
        raise PolicyError(f"rule {rule}: match.constraints: must be of {sorted(CONSTRAINTS)}")
    if not PRIORITIES.keys() >= set(match.priorities):
        raise PolicyError(f"rule {rule}: match.priorities: not a priority of this version")
    for name in (*match.models, *match.callers):
        _check_id(name, f"rule {rule}: match")


def _conditions(match: routing_pb2.Match, rule: str) -> Iterator[Condition]:
    """The conditions that are set, the cheapest first."""
    tasks, constraints = frozenset(match.tasks), frozenset(match.constraints)
    priorities = frozenset(PRIORITIES[name] for name in match.priorities)
    models, callers, labels = set(match.models), set(match.callers), dict(match.labels)
    if tasks:
        yield Condition("tasks", lambda features: features.task in tasks, closed=True)
    if constraints:
        yield Condition("constraints", lambda it: it.constraint in constraints, closed=True)
    if priorities:
        yield Condition("priorities", lambda it: it.priority in priorities, closed=True)
    if models:
        yield Condition("models", lambda it: it.model in models)
    if callers:
        yield Condition("callers", lambda it: it.caller in callers)
    if labels:
        yield Condition("labels", lambda it: labels.items() <= it.labels.items())
    if prompt := _bounds(match, "prompt_bytes", rule):
        yield Condition("prompt_bytes", lambda it: prompt[0] <= it.prompt_bytes <= prompt[1])
    if tokens := _bounds(match, "new_tokens", rule):
        yield Condition("new_tokens", lambda it: _within(it.max_new_tokens, tokens))
    if match.HasField("latency_budget_at_most"):
        where = f"rule {rule}: match.latency_budget_at_most"
        budget_s = _seconds(match.latency_budget_at_most, where)
        yield Condition("latency_budget_at_most", lambda it: _in_time(it, budget_s))


def _within(value: int | None, bounds: tuple[int, int]) -> bool:
    return value is not None and bounds[0] <= value <= bounds[1]


def _in_time(features: Features, limit_s: float) -> bool:
    budget_s = features.latency_budget_s
    return budget_s is not None and budget_s <= limit_s


def _seconds(duration: Duration, where: str) -> float:
    seconds = duration.ToNanoseconds() / 1e9
    if seconds <= 0:
        raise PolicyError(f"{where}: must be over 0")
    return seconds


def _bounds(match: routing_pb2.Match, what: str, rule: str) -> tuple[int, int] | None:
    low, high = f"min_{what}", f"max_{what}"
    has_low, has_high = match.HasField(low), match.HasField(high)
    if not has_low and not has_high:
        return None
    bounds = (getattr(match, low), getattr(match, high) if has_high else 2**32)
    if bounds[0] > bounds[1]:
        raise PolicyError(f"rule {rule}: match.{low}: is above {high}")
    return bounds


def _route(route: routing_pb2.Route, rule: str) -> Route:
    if not route.groups:
        raise PolicyError(f"rule {rule}: route.groups: at least one")
    where = f"rule {rule}: route"
    groups = [(entry.group, _share(entry, where)) for entry in route.groups]
    names = [*(group for group, _ in groups), *route.fallback]
    for name in (*names, *route.overload.groups):
        _check_id(name, where)
    if len(set(names)) != len(names):
        raise PolicyError(f"{where}: a group is named twice")
    return Route(
        groups=tuple(groups),
        fallback=tuple(route.fallback),
        timeout_s=_time(route, "timeout", where),
        overrides=_overrides(route, where),
        queue_share=_queue_share(route, where),
        overload=_overload(route, where),
        mirror=_mirror(route, where),
        hedge_after_s=_time(route, "hedge_after", where),
    )


def _time(
    route: routing_pb2.Route, field: Literal["timeout", "hedge_after"], where: str
) -> float | None:
    given = route.HasField(field)
    return _seconds(getattr(route, field), f"{where}.{field}") if given else None


def _share(entry: routing_pb2.GroupShare, where: str) -> int:
    share = entry.share if entry.HasField("share") else 1
    if not 1 <= share <= SHARE_LIMIT:
        raise PolicyError(f"{where}.groups: share must be 1 to {SHARE_LIMIT}")
    return share


_OVERRIDES: Mapping[str, int] = {"max_steps": STEPS_LIMIT, "max_new_tokens": 2**31 - 1}
"""Highest value by field."""


def _overrides(route: routing_pb2.Route | routing_pb2.Overload, where: str) -> Overrides | None:
    if not route.HasField("overrides"):
        return None
    given = {
        name: _count(route.overrides, name, most, f"{where}.overrides")
        for name, most in _OVERRIDES.items()
        if route.overrides.HasField(name)
    }
    return Overrides(**given)


def _queue_share(route: routing_pb2.Route, where: str) -> float:
    if not route.HasField("queue_share"):
        return 1.0
    return _count(route, "queue_share", 100, where) / 100


def _overload(route: routing_pb2.Route, where: str) -> Overload | None:
    if not route.HasField("overload"):
        return None
    given = _overrides(route.overload, f"{where}.overload")
    overrides = given.tightened(_overrides(route, where)) if given else None
    return Overload(overrides, tuple(route.overload.groups))


def _count(message: Message, field: str, most: int, where: str) -> int:
    value: int = getattr(message, field)
    if not 1 <= value <= most:
        raise PolicyError(f"{where}.{field}: must be 1 to {most}")
    return value


def _mirror(route: routing_pb2.Route, where: str) -> Mirror | None:
    if not route.HasField("mirror"):
        return None
    mirror, where = route.mirror, f"{where}.mirror"
    for name in filter(None, (mirror.group, mirror.version)):
        _check_id(name, where)
    if not mirror.group:
        raise PolicyError(f"{where}.group: must be set")
    return Mirror(mirror.group, mirror.version, _count(mirror, "percent", 100, where) / 100)


def _check_id(name: str, where: str) -> None:
    if not is_id(name):
        raise PolicyError(f"{where}: id {name[:80]!r} {FORM}")
