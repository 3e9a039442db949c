"""Every metric there is, taken from the objects that export it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import cast

from prometheus_client import CollectorRegistry, Enum, Info
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.registry import Collector

from services.chassis import keys
from services.chassis.metrics import new_registry
from services.chassis.mirror import Mirror
from services.chassis.registry import Registry
from services.chassis.security.audit import Audit
from services.config_center.hand_edits import HandEdits
from services.generation.lifecycle import Lifecycle
from services.generation.metrics import WorkerMetrics
from services.generation.node_status import StatusBoard
from services.router.admission import Admission
from services.router.group_metrics import GroupMetrics
from services.router.links import Links
from services.router.live_table import LiveTable
from services.router.metrics import RouterMetrics
from services.router.node_watch import NodeWatches
from services.router.table_metrics import TableMetrics

PREFIX = "braid_"
_SUFFIXES = {
    "counter": ("_total",),
    "info": ("_info",),
    "histogram": ("_bucket", "_sum", "_count"),
}


@dataclass(frozen=True, slots=True)
class Described:
    """One metric; ``labels`` without those that Prometheus adds."""

    name: str
    kind: str
    labels: tuple[str, ...]
    meaning: str
    exporters: tuple[str, ...] = ()

    @property
    def series(self) -> tuple[str, ...]:
        """The names that queries use."""
        return tuple(self.name + suffix for suffix in _SUFFIXES.get(self.kind, ("",)))


def catalog() -> tuple[Described, ...]:
    """The metrics of all services by name, each with who exports it."""
    found: dict[str, Described] = {}
    exporters: dict[str, list[str]] = {}
    for service, registry in _registries().items():
        for one in _described(registry):
            if one.name.startswith(PREFIX):
                found[one.name] = one
                exporters.setdefault(one.name, []).append(service)
    return tuple(
        Described(one.name, one.kind, one.labels, one.meaning, tuple(exporters[one.name]))
        for _, one in sorted(found.items())
    )


def _registries() -> Mapping[str, CollectorRegistry]:
    """What each process exports. Nothing connects: only descriptions are asked for."""
    registry = cast("Registry", None)
    return {
        "router": _of_router(registry),
        "worker": _of_worker(),
        "config center": _of_config_center(registry),
    }


def _of_router(registry: Registry) -> CollectorRegistry:
    metrics = new_registry("router")
    live = LiveTable(cast("NodeWatches", None), cast("Links", None))
    calls = RouterMetrics(metrics)
    TableMetrics(live, Mirror(registry, keys.ROOT), metrics)
    GroupMetrics(live, Admission(live, calls, Random(0), 1), metrics)
    Audit(metrics)
    return metrics


def _of_worker() -> CollectorRegistry:
    metrics = new_registry("worker")
    WorkerMetrics(metrics).follow(Lifecycle(), cast("StatusBoard", None))
    Audit(metrics)
    return metrics


def _of_config_center(registry: Registry) -> CollectorRegistry:
    metrics = new_registry("config_center")
    HandEdits(registry, metrics)
    Audit(metrics)
    return metrics


def _described(registry: CollectorRegistry) -> Iterator[Described]:
    for collector in list(registry._collector_to_names):
        yield from _of_collector(collector)


def _own_labels(metric: MetricWrapperBase) -> tuple[str, ...]:
    """Labels that the kind of a metric gives it: an Enum's state, an Info's facts."""
    if isinstance(metric, Enum):
        return (metric._name,)
    return tuple(metric._value) if isinstance(metric, Info) else ()


def _of_collector(collector: Collector) -> Iterator[Described]:
    if isinstance(collector, MetricWrapperBase):
        # Labels of a metric that has no value yet can be seen nowhere else.
        labels = (*collector._labelnames, *_own_labels(collector))
        yield Described(collector._name, str(collector._type), labels, collector._documentation)
        return
    for family in collector.collect():
        labels = tuple(getattr(family, "_labelnames", ()))
        yield Described(family.name, family.type, labels, family.documentation)
