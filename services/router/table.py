"""What the router knows, as one immutable value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from braid.config.v1 import config_pb2
from braid.routing.v1 import routing_pb2
from services.router.builtin_policy import builtin_policy
from services.router.node import TableNode
from services.router.policy_compiler import compile_policy
from services.router.pool import EMPTY, Pool
from services.router.rules import RuleSet

Place = tuple[str, str, str]
"""Group, model and version of a node."""


@dataclass(frozen=True, slots=True)
class Variant:
    """All nodes of a group that serve one version, and those that take calls."""

    nodes: Mapping[str, TableNode] = field(default_factory=dict)
    pool: Pool = EMPTY


Models = Mapping[str, Mapping[str, Variant]]
"""Variants by model and version."""


@dataclass(frozen=True, slots=True)
class PolicyInForce:
    """A policy as stored and as compiled."""

    message: routing_pb2.Policy
    rules: RuleSet
    built_in: bool = False

    @classmethod
    def default(cls) -> PolicyInForce:
        """The built-in one."""
        message = builtin_policy()
        return cls(message, compile_policy(message), built_in=True)


@dataclass(frozen=True, slots=True)
class RoutingTable:
    """Everything a choice depends on. A change makes a new table that shares the rest."""

    policy: PolicyInForce
    revision: int = 0
    nodes: Mapping[str, TableNode] = field(default_factory=dict)
    """By registry key."""
    groups: Mapping[str, Models] = field(default_factory=dict)
    traffic: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Version shares by model; a model without an entry shares by node weight."""
    recorded_models: frozenset[str] = frozenset()
    """Models with a version on record, whether or not a node serves it."""
    records: Mapping[str, config_pb2.Group] = field(default_factory=dict)
    """Runtime parameters of the groups that have a record."""
    holders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Groups by the model that some node of theirs serves."""

    def knows(self, model: str) -> bool:
        """Whether any node or record has the model."""
        return model in self.recorded_models or model in self.holders

    def groups_with(self, model: str) -> tuple[str, ...]:
        """Groups in which some node serves the model."""
        return self.holders.get(model, ())

    def versions_of(self, model: str) -> frozenset[str]:
        """Versions of the model that some node serves."""
        return frozenset(
            version for group in self.groups_with(model) for version in self.groups[group][model]
        )

    def changed(self, nodes: Iterable[TableNode] = (), gone: Iterable[str] = ()) -> RoutingTable:
        """The table with ``nodes`` put in by key and the keys ``gone`` taken out.

        Only the variants those nodes belong to are made anew.
        """
        known = dict(self.nodes)
        touched: dict[Place, dict[str, TableNode | None]] = {}
        for key in gone:
            if key in known:
                touched.setdefault(_place(known.pop(key)), {})[key] = None
        for node in nodes:
            before = known.get(node.key)
            if before is not None and _place(before) != _place(node):
                touched.setdefault(_place(before), {})[node.key] = None
            touched.setdefault(_place(node), {})[node.key] = node
            known[node.key] = node
        groups = _regrouped(self.groups, touched)
        return replace(self, nodes=known, groups=groups, holders=_holders(groups))


def _place(node: TableNode) -> Place:
    return node.record.group, node.record.model, node.record.version


def _holders(groups: Mapping[str, Models]) -> Mapping[str, tuple[str, ...]]:
    holders: dict[str, list[str]] = {}
    for group, models in groups.items():
        for model in models:
            holders.setdefault(model, []).append(group)
    return {model: tuple(names) for model, names in holders.items()}


def _regrouped(
    groups: Mapping[str, Models], touched: Mapping[Place, Mapping[str, TableNode | None]]
) -> Mapping[str, Models]:
    changed = dict(groups)
    for (group, model, version), nodes in touched.items():
        models = dict(changed.get(group, {}))
        versions = dict(models.get(model, {}))
        versions[version] = _variant(versions.get(version, Variant()), nodes)
        models[model] = {name: variant for name, variant in versions.items() if variant.nodes}
        changed[group] = {name: kept for name, kept in models.items() if kept}
    return {group: models for group, models in changed.items() if models}


def _variant(variant: Variant, changes: Mapping[str, TableNode | None]) -> Variant:
    merged = {**variant.nodes, **changes}
    nodes = {key: node for key, node in merged.items() if node is not None}
    return Variant(nodes, Pool(node for node in nodes.values() if node.routable and node.weight))
