"""Everything that looks wrong with what is in force."""

from __future__ import annotations

from collections.abc import Iterator

from braid.routing.v1 import routing_pb2
from services.chassis.keys import POLICY, traffic_key
from services.router.policy_review import Doubt, review_against, review_policy, review_traffic
from services.router.table import RoutingTable


def findings_of(table: RoutingTable) -> Iterator[routing_pb2.Finding]:
    """Doubts about a stored policy and about traffic shares; nobody has to have them."""
    policy = table.policy
    if not policy.built_in:
        yield from (_finding(POLICY, doubt) for doubt in review_policy(policy.message))
        against = review_against(policy.message, table.groups.keys(), table.records)
        yield from (_finding(POLICY, doubt) for doubt in against)
    for model, shares in table.traffic.items():
        for doubt in review_traffic(shares, table.versions_of(model)):
            yield _finding(traffic_key(model), doubt)


def _finding(key: str, doubt: Doubt) -> routing_pb2.Finding:
    return routing_pb2.Finding(key=key, rule=doubt.rule, description=doubt.description)
