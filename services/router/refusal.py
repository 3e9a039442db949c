"""Why a node does not take a request, and what the caller is told when none does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from services.chassis.errors import (
    FieldViolation,
    NoWorkerAvailable,
    ServiceError,
    UnsupportedParameter,
)
from services.router.features import FIELD_OF_NEED, Features
from services.router.node import TableNode
from services.router.rules import Rule
from services.router.table import RoutingTable

RETRY_AFTER_S = 1.0


def obstacle(node: TableNode, features: Features, table: RoutingTable) -> str:
    """Why ``node`` cannot be chosen for the request; empty where it can."""
    missing = features.needs - node.abilities
    inability = f"cannot do {', '.join(sorted(missing))}" if missing else ""
    return _closed(node, features, table) or inability


def _closed(node: TableNode, features: Features, table: RoutingTable) -> str:
    """Why it takes no calls for the model asked for, whatever else the request is."""
    if features.model and node.record.model != features.model:
        return "serves another model"
    if not node.routable:
        return node.reason or node.ejected
    if not node.weight:
        return "weight is 0"
    traffic = table.traffic.get(node.record.model)
    if traffic is not None and not traffic.get(node.record.version):
        return "its version has no traffic share"
    return ""


def refusal(
    features: Features, table: RoutingTable, rule: Rule, elsewhere: tuple[str, ...] = ()
) -> ServiceError:
    """The error for a request that no node of the rule's groups can take.

    Where the only thing wrong with some node is what it cannot do, the request
    asks for something that is not on offer; otherwise a retry may help.
    """
    groups = elsewhere or rule.route.all_groups
    nodes = [node for node in table.nodes.values() if node.record.group in groups]
    missing = [
        features.needs - node.abilities
        for node in nodes
        if not _closed(node, features, table) and not features.needs <= node.abilities
    ]
    if missing:
        return unsupported(min(missing, key=len), groups)
    return NoWorkerAvailable(
        f"no node can take the request: {_census(nodes, features, table, groups)}",
        retry_after_s=RETRY_AFTER_S,
        metadata={"rule": rule.name},
    )


def unsupported(missing: frozenset[str], groups: Iterable[str]) -> UnsupportedParameter:
    """The error for what nobody asked for can do; names the fields."""
    description = f"no node of {' or '.join(groups)} can do this"
    violations = tuple(FieldViolation(FIELD_OF_NEED[need], description) for need in sorted(missing))
    return UnsupportedParameter(
        f"{violations[0].field}: {violations[0].description}", violations=violations
    )


def _census(
    nodes: list[TableNode], features: Features, table: RoutingTable, groups: Iterable[str]
) -> str:
    """Nodes counted by what is wrong with them, e.g. "2 x weight is 0"."""
    if not nodes:
        return f"no node in {' or '.join(groups)}"
    counted = Counter(obstacle(node, features, table) or "was just tried" for node in nodes)
    return ", ".join(f"{count} x {reason}" for reason, count in counted.most_common())
