"""What looks wrong in a policy or in traffic shares that can be used all the same."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from braid.config.v1 import config_pb2
from braid.routing.v1 import routing_pb2
from services.router.rules import DEFAULT_RULE

WHOLES = (100, 1000)
"""What shares that are meant as parts of a whole add up to."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """One thing that looks wrong; ``rule`` is empty for traffic shares."""

    rule: str
    description: str


def review_policy(policy: routing_pb2.Policy) -> Iterator[Doubt]:
    """Doubts that the policy alone gives rise to."""
    for position, rule in enumerate(policy.rules):
        before = next((r for r in policy.rules[:position] if covers(r.match, rule.match)), None)
        if before is not None:
            yield Doubt(rule.name, f"never matches: {before.name} does first")
    for name, route in _routes(policy):
        yield from _added_up(name, [entry.share for entry in route.groups if _shared(entry)])


def review_against(
    policy: routing_pb2.Policy, groups: Collection[str], records: Mapping[str, config_pb2.Group]
) -> Iterator[Doubt]:
    """Doubts in the light of the groups there are, and of their records."""
    for name, route in _routes(policy):
        for group in _named(route):
            if group not in groups and group not in records:
                yield Doubt(name, f"group {group} has no node and no record")
            cap = records[group].max_steps if group in records else 0
            if cap and route.overrides.max_steps > cap:
                asked = route.overrides.max_steps
                yield Doubt(name, f"max_steps {asked} is over the {cap} of group {group}")


def review_traffic(shares: Mapping[str, int], served: Collection[str]) -> Iterator[Doubt]:
    """Doubts about one model's shares, ``served`` being the versions that some node has."""
    if not any(shares.values()):
        yield Doubt("", "every share is 0: the model takes no call")
    for version, share in shares.items():
        if share and version not in served:
            yield Doubt("", f"version {version} has a share and no node")
    yield from _added_up("", [share for share in shares.values() if share])


def covers(wide: routing_pb2.Match, narrow: routing_pb2.Match) -> bool:
    """Whether every request that ``narrow`` matches is matched by ``wide``."""
    return (
        all(
            _covers_set(getattr(wide, field), getattr(narrow, field))
            for field in ("tasks", "models", "callers", "constraints", "priorities")
        )
        and dict(wide.labels).items() <= dict(narrow.labels).items()
        and _covers_budget(wide, narrow)
        and all(_covers_range(wide, narrow, field) for field in ("prompt_bytes", "new_tokens"))
    )


def _covers_set(wide: Collection[object], narrow: Collection[object]) -> bool:
    return not wide or (bool(narrow) and set(wide) >= set(narrow))


def _covers_budget(wide: routing_pb2.Match, narrow: routing_pb2.Match) -> bool:
    field = "latency_budget_at_most"
    if not wide.HasField(field):
        return True
    longest = wide.latency_budget_at_most.ToNanoseconds()
    return narrow.HasField(field) and narrow.latency_budget_at_most.ToNanoseconds() <= longest


def _covers_range(wide: routing_pb2.Match, narrow: routing_pb2.Match, what: str) -> bool:
    low, high = f"min_{what}", f"max_{what}"
    if not wide.HasField(low) and not wide.HasField(high):
        return True
    if not narrow.HasField(low) and not narrow.HasField(high):
        return False
    fits: bool = getattr(narrow, low) >= getattr(wide, low)
    if not wide.HasField(high):
        return fits
    most: int = getattr(wide, high)
    return bool(fits and narrow.HasField(high) and getattr(narrow, high) <= most)


def _routes(policy: routing_pb2.Policy) -> Iterator[tuple[str, routing_pb2.Route]]:
    for rule in policy.rules:
        yield rule.name, rule.route
    yield DEFAULT_RULE, policy.default


def _named(route: routing_pb2.Route) -> Iterable[str]:
    mirror = (route.mirror.group,) if route.HasField("mirror") else ()
    own = (entry.group for entry in route.groups)
    return (*own, *route.fallback, *route.overload.groups, *mirror)


def _shared(entry: routing_pb2.GroupShare) -> bool:
    return entry.HasField("share")


def _added_up(rule: str, shares: list[int]) -> Iterator[Doubt]:
    whole = sum(shares)
    if len(shares) > 1 and whole not in WHOLES:
        yield Doubt(rule, f"the shares add up to {whole}, not to 100; they count as parts of it")
