"""Choosing a node for a request: rule, group, version, node."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from services.chassis.errors import (
    NotFound,
    NoWorkerAvailable,
    UnknownModel,
    UnsupportedParameter,
)
from services.router.features import Features
from services.router.node import TableNode
from services.router.overrides import UNCHANGED, Overrides
from services.router.pool import EMPTY, NOBODY, Pool
from services.router.refusal import refusal, unsupported
from services.router.rules import Mirror, Rule
from services.router.shares import draw
from services.router.table import RoutingTable, Variant


class Reason(enum.StrEnum):
    """What put a request on its group."""

    RULE = "rule"
    FALLBACK = "fallback"
    NAMED_MODEL = "named_model"
    OVERLOAD = "overload"
    SMOKE = "smoke"


@dataclass(frozen=True, slots=True)
class Decision:
    """Where a request goes, and why; ``degraded`` as its rule says for an overload."""

    rule: Rule
    reason: Reason
    node: TableNode
    degraded: bool = False


def pool_of(
    node: TableNode, features: Features, table: RoutingTable, avoid: frozenset[str]
) -> Pool:
    """The nodes that serve the same version in the same group and can take the call."""
    record = node.record
    variant = table.groups.get(record.group, {}).get(record.model, {}).get(record.version)
    return variant.pool.able(features.needs, avoid) if variant else EMPTY


def pinned(
    node_id: str, features: Features, table: RoutingTable, avoid: frozenset[str] = NOBODY
) -> Decision:
    """The node of that name, whatever its weight, its version's share and its calls so far.

    Raises NotFound, UnsupportedParameter, and NoWorkerAvailable where it does not
    answer or is in ``avoid``.
    """
    node = next((one for one in table.nodes.values() if one.record.node_id == node_id), None)
    if node is None:
        raise NotFound(f"no node is called {node_id[:80]!r}")
    if node.reason or node.key in avoid:
        raise NoWorkerAvailable(f"the node takes no calls: {node.reason or 'was just tried'}")
    if features.model and features.model != node.record.model:
        raise UnsupportedParameter.field("model", f"the node serves {node.record.model}")
    if not features.needs <= node.abilities:
        raise unsupported(features.needs - node.abilities, (node_id,))
    return Decision(table.policy.rules.match(features), Reason.SMOKE, node)


def shadow_of(
    mirror: Mirror, features: Features, table: RoutingTable, rng: Random
) -> TableNode | None:
    """A node with room for a copy of the request; shares of traffic do not count."""
    variants = (
        variant
        for versions in table.groups.get(mirror.group, {}).values()
        for version, variant in versions.items()
        if mirror.version in ("", version)
    )
    pools = [variant.pool.able(features.needs).with_room() for variant in variants]
    weighted = [(pool, pool.weight) for pool in pools if pool.nodes]
    return draw(weighted, rng).draw(rng) if weighted else None


def with_room(
    group: str, features: Features, table: RoutingTable, rng: Random, avoid: frozenset[str]
) -> TableNode | None:
    """A node of the group that can run the call at once, if there is one."""
    offers = [
        replace(offer, pool=free)
        for offer in offers_of(group, features, table, avoid)
        if (free := offer.pool.with_room()).nodes
    ]
    return _node(offers, features, table, rng) if offers else None


def overrides_of(decision: Decision, features: Features, table: RoutingTable) -> Overrides | None:
    """What the rule changes of this request on the node chosen; None where it is nothing."""
    route = decision.rule.route
    degraded = route.overload if decision.degraded else None
    overrides = degraded.overrides if degraded else route.overrides
    if overrides is None:
        return None
    node = decision.node
    permitted = overrides.within(table.records.get(node.record.group))
    changing = permitted.changing(features, diffusion=node.diffusion)
    return changing if changing != UNCHANGED else None


@dataclass(frozen=True, slots=True)
class Offer:
    """Nodes of one group that could serve the request with one version."""

    group: str
    model: str
    version: str
    pool: Pool


def choose(
    features: Features, table: RoutingTable, rng: Random, avoid: frozenset[str] = NOBODY
) -> Decision:
    """The node for a request; keys in ``avoid`` are not taken.

    Reads the table and draws from ``rng``, and changes neither. Raises
    UnknownModel, UnsupportedParameter where nodes run but none can do what the
    request asks for, and NoWorkerAvailable.
    """
    if features.model and not table.knows(features.model):
        raise UnknownModel("model: no node serves it and no record names it")
    rule = table.policy.rules.match(features)
    for reason, groups in candidates(features, table, rule):
        offers = [
            offer for group, _ in groups for offer in offers_of(group, features, table, avoid)
        ]
        if offers:
            if reason is Reason.RULE and len(groups) > 1:
                offers = _one_group(offers, groups, features, rng)
            return Decision(rule, reason, _node(offers, features, table, rng))
    raise refusal(features, table, rule, named_elsewhere(features, table, rule))


def candidates(
    features: Features, table: RoutingTable, rule: Rule
) -> Iterator[tuple[Reason, Sequence[tuple[str, int]]]]:
    """Groups with their shares, those to try first at first.

    A caller that names a model gets it wherever it is served: where no group of
    the rule has a node with it, the groups that do take their place.
    """
    elsewhere = named_elsewhere(features, table, rule)
    if elsewhere:
        yield Reason.NAMED_MODEL, [(group, 1) for group in elsewhere]
        return
    yield Reason.RULE, rule.route.groups
    for group in rule.route.fallback:
        yield Reason.FALLBACK, [(group, 1)]


def named_elsewhere(features: Features, table: RoutingTable, rule: Rule) -> tuple[str, ...]:
    """Groups with the model that the request names, if the rule's groups have none."""
    if not features.model:
        return ()
    holders = table.groups_with(features.model)
    return () if any(group in holders for group in rule.route.all_groups) else holders


def offers_of(
    group: str, features: Features, table: RoutingTable, avoid: frozenset[str] = NOBODY
) -> Iterator[Offer]:
    """The versions that some node of the group could serve the request with now."""
    for model, version, variant in _variants(group, features, table):
        traffic = table.traffic.get(model)
        if traffic is not None and not traffic.get(version):
            continue
        pool = variant.pool.able(features.needs, avoid)
        if pool.nodes:
            yield Offer(group, model, version, pool)


def _variants(
    group: str, features: Features, table: RoutingTable
) -> Iterator[tuple[str, str, Variant]]:
    models = table.groups.get(group, {})
    for model in (features.model,) if features.model else models:
        for version, variant in models.get(model, {}).items():
            yield model, version, variant


def version_shares(
    offers: Iterable[Offer], table: RoutingTable
) -> list[tuple[tuple[str, str], float]]:
    """Share of each model and version among the offers.

    Models share by node weight, and so do the versions of a model without
    traffic shares; otherwise they share as those say, whatever the number of
    nodes. A version that cannot serve leaves its share to the others.
    """
    weights: dict[str, dict[str, int]] = {}
    for offer in offers:
        versions = weights.setdefault(offer.model, {})
        versions[offer.version] = versions.get(offer.version, 0) + offer.pool.weight
    return [
        ((model, version), share)
        for model, versions in weights.items()
        for version, share in _shares_within(versions, table.traffic.get(model))
    ]


def _shares_within(
    weights: dict[str, int], traffic: Mapping[str, int] | None
) -> Iterator[tuple[str, float]]:
    if traffic is None:
        yield from weights.items()
        return
    scale = sum(weights.values()) / sum(traffic[version] for version in weights)
    for version in weights:
        yield version, scale * traffic[version]


def _one_group(
    offers: list[Offer], groups: Sequence[tuple[str, int]], features: Features, rng: Random
) -> list[Offer]:
    able = {offer.group for offer in offers}
    chosen = draw(
        [(group, share) for group, share in groups if group in able], rng, features.session
    )
    return [offer for offer in offers if offer.group == chosen]


def _node(offers: list[Offer], features: Features, table: RoutingTable, rng: Random) -> TableNode:
    if len(offers) == 1:
        return offers[0].pool.draw(rng)
    chosen = draw(version_shares(offers, table), rng, features.session)
    pools = [
        (index, offer.pool.weight)
        for index, offer in enumerate(offers)
        if (offer.model, offer.version) == chosen
    ]
    return offers[draw(pools, rng)].pool.draw(rng)
