"""Load by group, read when it is asked for: what an autoscaler follows."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from services.generation.types import Priority
from services.router.admission import Admission
from services.router.group_load import pending_forwards
from services.router.passage import TableSource
from services.router.table import RoutingTable


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """Load of one group; ``queued`` by class."""

    group: str
    queued: Mapping[Priority, int]
    expected_wait_s: float
    pending_forwards: float


def group_figures(table: RoutingTable, admission: Admission) -> Iterator[GroupFigures]:
    """Figures of every group that has nodes, by name."""
    for group in sorted(table.groups):
        line = admission.lines.get(group)
        turns = tuple(line) if line else ()
        pools = [v.pool for versions in table.groups[group].values() for v in versions.values()]
        nodes = [node for pool in pools for node in pool.nodes]
        full = all(node.load.saturated for node in nodes)
        normal = admission.wait_s(group, Priority.NORMAL, time.monotonic())
        yield GroupFigures(
            group=group,
            queued=Counter(Priority(turn.priority) for turn in turns),
            expected_wait_s=normal if nodes and full else 0.0,
            pending_forwards=pending_forwards(node.load for node in nodes)
            + sum(turn.forwards for turn in turns),
        )


class GroupMetrics(Collector):
    """The figures as metrics."""

    def __init__(
        self, tables: TableSource, admission: Admission, registry: CollectorRegistry
    ) -> None:
        self._tables = tables
        self._admission = admission
        registry.register(self)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The present figures."""
        queued = GaugeMetricFamily(
            "braid_router_queue_depth",
            "Calls that wait in this router for a node.",
            labels=["group", "priority"],
        )
        wait = GaugeMetricFamily(
            "braid_router_expected_wait_seconds",
            "Time until a call that comes now would be given a node.",
            labels=["group"],
        )
        work = GaugeMetricFamily(
            "braid_router_pending_forwards",
            "Steps x concurrency: forward passes still needed on the nodes and in the queue.",
            labels=["group"],
        )
        for figures in group_figures(self._tables.table, self._admission):
            for priority in Priority:
                labels = [figures.group, priority.name.lower()]
                queued.add_metric(labels, figures.queued[priority])
            wait.add_metric([figures.group], figures.expected_wait_s)
            work.add_metric([figures.group], figures.pending_forwards)
        yield from (queued, wait, work)
