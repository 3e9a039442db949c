"""The routing policy, checked as a whole and compiled once for matching."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from braid.inference.v1 import inference_pb2
from braid.routing.v1 import routing_pb2
from services.chassis.ids import FORM, is_id
from services.router.features import Features

DEFAULT_RULE = "default"
CONSTRAINTS = frozenset({"json_schema", "regex", "choice", "template"})
SHARE_LIMIT = 1000
TASKS = frozenset(inference_pb2.Task.values()) - {inference_pb2.TASK_UNSPECIFIED}


class PolicyError(ValueError):
    """The policy cannot be used; the message says which rule and why."""


@dataclass(frozen=True, slots=True)
class Route:
    """Groups with their shares, and those to try where none of them can serve."""

    groups: tuple[tuple[str, int], ...]
    fallback: tuple[str, ...] = ()

    @property
    def all_groups(self) -> tuple[str, ...]:
        """Every group named, in the order they are tried."""
        return (*(group for group, _ in self.groups), *self.fallback)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. An empty or None condition holds for every request."""

    name: str
    route: Route
    tasks: frozenset[int] = frozenset()
    models: frozenset[str] = frozenset()
    labels: tuple[tuple[str, str], ...] = ()
    callers: frozenset[str] = frozenset()
    latency_budget_at_most_s: float | None = None
    constraints: frozenset[str] = frozenset()
    prompt_bytes: tuple[int, int] | None = None
    new_tokens: tuple[int, int] | None = None

    def matches(self, features: Features) -> bool:
        """Whether every condition holds for ``features``."""
        return (
            (not self.tasks or features.task in self.tasks)
            and (not self.models or features.model in self.models)
            and (not self.callers or features.caller in self.callers)
            and (not self.constraints or features.constraint in self.constraints)
            and (not self.labels or self._labels_match(features.labels))
            and _within(features.prompt_bytes, self.prompt_bytes)
            and _within(features.max_new_tokens, self.new_tokens)
            and self._in_time(features.latency_budget_s)
        )

    def _labels_match(self, labels: Mapping[str, str]) -> bool:
        return all(labels.get(name) == value for name, value in self.labels)

    def _in_time(self, budget_s: float | None) -> bool:
        limit = self.latency_budget_at_most_s
        return limit is None or (budget_s is not None and budget_s <= limit)


def _within(value: int | None, bounds: tuple[int, int] | None) -> bool:
    return bounds is None or (value is not None and bounds[0] <= value <= bounds[1])


class RuleSet:
    """Ordered rules, laid out by task so that few are looked at per request."""

    def __init__(self, rules: Iterable[Rule], default: Route) -> None:
        self.default = Rule(DEFAULT_RULE, default)
        self.rules = (*rules, self.default)
        self._by_task = {
            task: tuple(rule for rule in self.rules if not rule.tasks or task in rule.tasks)
            for task in TASKS
        }

    def match(self, features: Features) -> Rule:
        """The first rule that matches, the default at last."""
        for rule in self._by_task[features.task]:
            if rule.matches(features):
                return rule
        return self.default


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
    match = rule.match
    _check_match(match, rule.name)
    return Rule(
        name=rule.name,
        route=_route(rule.route, rule.name),
        tasks=frozenset(match.tasks),
        models=frozenset(match.models),
        labels=tuple(sorted(match.labels.items())),
        callers=frozenset(match.callers),
        latency_budget_at_most_s=_latency_budget(match, rule.name),
        constraints=frozenset(match.constraints),
        prompt_bytes=_bounds(match, "min_prompt_bytes", "max_prompt_bytes", rule.name),
        new_tokens=_bounds(match, "min_new_tokens", "max_new_tokens", rule.name),
    )


def _check_match(match: routing_pb2.Match, rule: str) -> None:
    if not TASKS.issuperset(match.tasks):
        raise PolicyError(f"rule {rule}: match.tasks: not a task of this version")
    if not CONSTRAINTS.issuperset(match.constraints):
        raise PolicyError(f"rule {rule}: match.constraints: must be of {sorted(CONSTRAINTS)}")
    for name in (*match.models, *match.callers):
        _check_id(name, f"rule {rule}: match")


def _latency_budget(match: routing_pb2.Match, rule: str) -> float | None:
    if not match.HasField("latency_budget_at_most"):
        return None
    budget_s = match.latency_budget_at_most.ToNanoseconds() / 1e9
    if budget_s <= 0:
        raise PolicyError(f"rule {rule}: match.latency_budget_at_most: must be over 0")
    return budget_s


def _bounds(match: routing_pb2.Match, low: str, high: str, rule: str) -> tuple[int, int] | None:
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
    groups = [(entry.group, _share(entry, rule)) for entry in route.groups]
    names = [*(group for group, _ in groups), *route.fallback]
    for name in names:
        _check_id(name, f"rule {rule}: route")
    if len(set(names)) != len(names):
        raise PolicyError(f"rule {rule}: route: a group is named twice")
    return Route(tuple(groups), tuple(route.fallback))


def _share(entry: routing_pb2.GroupShare, rule: str) -> int:
    share = entry.share if entry.HasField("share") else 1
    if not 1 <= share <= SHARE_LIMIT:
        raise PolicyError(f"rule {rule}: route.groups: share must be 1 to {SHARE_LIMIT}")
    return share


def _check_id(name: str, where: str) -> None:
    if not is_id(name):
        raise PolicyError(f"{where}: id {name[:80]!r} {FORM}")
