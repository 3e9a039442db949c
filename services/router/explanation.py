"""A decision taken apart: every candidate and what became of it."""

from __future__ import annotations

from random import Random

from braid.routing.v1 import routing_pb2
from services.chassis.errors import ServiceError
from services.router.features import Features
from services.router.node import DEFAULT_WEIGHT, TableNode
from services.router.policy import (
    Decision,
    candidates,
    choose,
    named_elsewhere,
    offers_of,
    overrides_of,
    version_shares,
)
from services.router.refusal import obstacle
from services.router.table import RoutingTable


def explain(features: Features, table: RoutingTable, rng: Random) -> routing_pb2.ExplainResponse:
    """How ``choose`` would decide, with the reason for every node it could meet."""
    rule = table.policy.rules.match(features)
    response = routing_pb2.ExplainResponse(rule=rule.name, task=features.task)
    decision = None
    try:
        decision = choose(features, table, rng)
        _put_choice(response, decision)
        _put_shares(response, features, table)
        _put_shape(response, decision, features, table)
    except ServiceError as error:
        response.failure = error.message
    _put_passed(response, features, table)
    groups = named_elsewhere(features, table, rule) or rule.route.all_groups
    for group in groups:
        for node in table.nodes.values():
            if node.record.group == group:
                response.candidates.append(_candidate(node, features, table, decision))
    return response


def _put_choice(response: routing_pb2.ExplainResponse, decision: Decision) -> None:
    record = decision.node.record
    response.group, response.node_id = record.group, record.node_id
    response.model, response.version = record.model, record.version
    response.reason = decision.reason


def _put_shape(
    response: routing_pb2.ExplainResponse,
    decision: Decision,
    features: Features,
    table: RoutingTable,
) -> None:
    """What the rule does to the call on its way."""
    timeout_s = decision.rule.route.timeout_s
    if timeout_s is not None:
        response.timeout.FromNanoseconds(round(timeout_s * 1e9))
    overrides = overrides_of(decision, features, table)
    if overrides and overrides.max_steps:
        response.overrides.max_steps = overrides.max_steps
    if overrides and overrides.max_new_tokens:
        response.overrides.max_new_tokens = overrides.max_new_tokens


def _put_passed(
    response: routing_pb2.ExplainResponse, features: Features, table: RoutingTable
) -> None:
    """Every rule before the one that matched, with what was in the way."""
    for rule in table.policy.rules.rules:
        condition = rule.failing(features)
        if not condition:
            return
        response.passed_rules.append(routing_pb2.PassedRule(rule=rule.name, condition=condition))


def _put_shares(
    response: routing_pb2.ExplainResponse, features: Features, table: RoutingTable
) -> None:
    """Chance of each version in the group chosen; versions of other models count as well."""
    rule = table.policy.rules.match(features)
    for _, groups in candidates(features, table, rule):
        if response.group not in (group for group, _ in groups):
            continue
        together = named_elsewhere(features, table, rule) or (response.group,)
        offers = [offer for group in together for offer in offers_of(group, features, table)]
        shares = version_shares(offers, table)
        total = sum(share for _, share in shares)
        for (_, version), share in shares:
            response.version_shares[version] += share / total
        return


def _candidate(
    node: TableNode, features: Features, table: RoutingTable, decision: Decision | None
) -> routing_pb2.Candidate:
    reason = obstacle(node, features, table)
    return routing_pb2.Candidate(
        node_id=node.record.node_id,
        group=node.record.group,
        model=node.record.model,
        version=node.record.version,
        weight=node.weight,
        drain_seconds=node.load.drain_seconds,
        score=node.load.drain_seconds * DEFAULT_WEIGHT / node.weight if node.weight else 0.0,
        eligible=not reason,
        reason=reason or _fate(node, decision),
    )


def _fate(node: TableNode, decision: Decision | None) -> str:
    """What became of a node that could have been chosen."""
    if decision is None:
        return "nothing was chosen"
    chosen = decision.node
    if node is chosen:
        return "chosen, and full: the call would wait" if node.load.saturated else "chosen"
    if node.record.group != chosen.record.group:
        return f"group {chosen.record.group} was chosen"
    if node.record.version != chosen.record.version:
        return f"version {chosen.record.version} was drawn"
    if node.load.drain_seconds > chosen.load.drain_seconds:
        return f"{chosen.record.node_id} waits less"
    return f"{chosen.record.node_id} was drawn"
