"""Routing rules in the form that requests are matched by."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from services.router.features import Features
from services.router.overrides import Overrides

DEFAULT_RULE = "default"

Check = Callable[[Features], bool]


@dataclass(frozen=True, slots=True)
class Overload:
    """What becomes of a call whose group is full.

    ``overrides`` hold in place of the route's own, which they are at most.
    """

    overrides: Overrides | None = None
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Mirror:
    """Where copies of calls go; ``share`` of them, 0 to 1; an empty version: any."""

    group: str
    version: str
    share: float


@dataclass(frozen=True, slots=True)
class Route:
    """Groups with their shares, those to try where none of them can serve, and how."""

    groups: tuple[tuple[str, int], ...]
    fallback: tuple[str, ...] = ()
    timeout_s: float | None = None
    overrides: Overrides | None = None
    hedge_after_s: float | None = None
    queue_share: float = 1.0
    overload: Overload | None = None
    mirror: Mirror | None = None

    @property
    def all_groups(self) -> tuple[str, ...]:
        """Every group named, in the order they are tried."""
        return (*(group for group, _ in self.groups), *self.fallback)


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of a rule, by its field of Match.

    ``closed`` ones depend on nothing but task, constraint and priority, of which
    there are few combinations.
    """

    field: str
    holds: Check
    closed: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; without conditions it matches every request."""

    name: str
    route: Route
    conditions: tuple[Condition, ...] = ()

    def failing(self, features: Features) -> str:
        """The first condition that does not hold; empty where the rule matches."""
        return next((one.field for one in self.conditions if not one.holds(features)), "")


class RuleSet:
    """Ordered rules, laid out by what is closed so that few are looked at per request."""

    def __init__(self, rules: Iterable[Rule], default: Route) -> None:
        self.default = Rule(DEFAULT_RULE, default)
        self.rules = (*rules, self.default)
        self._near: dict[object, tuple[tuple[Rule, tuple[Check, ...]], ...]] = {}

    def match(self, features: Features) -> Rule:
        """The first rule that matches, the default at last."""
        kind = (features.task, features.constraint, features.priority)
        for rule, checks in self._near.get(kind) or self._narrow(kind, features):
            for check in checks:
                if not check(features):
                    break
            else:
                return rule
        return self.default

    def _narrow(
        self, kind: object, features: Features
    ) -> tuple[tuple[Rule, tuple[Check, ...]], ...]:
        """The rules left for requests of this kind, each with the conditions left."""
        near = []
        for rule in self.rules:
            if all(one.holds(features) for one in rule.conditions if one.closed):
                checks = tuple(one.holds for one in rule.conditions if not one.closed)
                near.append((rule, checks))
                if not checks:
                    break
        self._near[kind] = tuple(near)
        return self._near[kind]
