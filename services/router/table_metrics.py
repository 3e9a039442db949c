"""Figures of the routing table, read when they are scraped."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from services.chassis.keys import CALLERS, GROUPS, NODES, POLICY, TRAFFIC, WEIGHTS
from services.chassis.mirror import Mirror
from services.router.findings import findings_of
from services.router.live_table import LiveTable
from services.router.node import TableNode

KINDS = {
    "policy": POLICY,
    "traffic": TRAFFIC,
    "weights": WEIGHTS,
    "groups": GROUPS,
    "nodes": NODES,
    "callers": CALLERS,
}


class TableMetrics(Collector):
    """Nodes by state, the registry's age and revision, and values not taken."""

    def __init__(self, live: LiveTable, mirror: Mirror, registry: CollectorRegistry) -> None:
        self._live = live
        self._mirror = mirror
        registry.register(self)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The present figures."""
        state = self._mirror.state
        yield _gauge("registry_revision", "Revision of the table in force.", state.revision)
        yield _gauge("registry_stale", "1 while the registry is away.", not state.connected)
        age_s = 0.0 if state.connected else state.age_s(time.monotonic())
        yield _gauge("registry_age_seconds", "Time since the registry last answered.", age_s)
        yield from self._rejected()
        yield self._nodes()

    def _rejected(self) -> Iterator[GaugeMetricFamily]:
        rejected = [value.key for value in self._live.rejected]
        yield _gauge("rejected_values", "Values in the registry not taken.", len(rejected))
        valid = GaugeMetricFamily(
            "braid_router_config_valid", "1 where every value is in force.", labels=["kind"]
        )
        for kind, prefix in KINDS.items():
            valid.add_metric([kind], float(not any(key.startswith(prefix) for key in rejected)))
        yield valid
        findings = sum(1 for _ in findings_of(self._live.table))
        yield _gauge("findings", "Things that look wrong in policy and traffic.", findings)

    def _nodes(self) -> GaugeMetricFamily:
        nodes = GaugeMetricFamily(
            "braid_router_nodes", "Nodes known, by group and state.", labels=["group", "state"]
        )
        counted = Counter(
            (node.record.group, _state(node)) for node in self._live.table.nodes.values()
        )
        for (group, state), count in counted.items():
            nodes.add_metric([group, state], count)
        return nodes


def _gauge(name: str, meaning: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"braid_router_{name}", meaning, value=float(value))


def _state(node: TableNode) -> str:
    if node.ejected:
        return "ejected"
    if not node.routable:
        return "unroutable"
    if not node.weight:
        return "weight_zero"
    return "lingering" if node.lingering else "routable"
