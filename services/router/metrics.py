"""What the router exports. Label values come from closed sets, never from a request's text."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from braid.inference.v1 import inference_pb2

NONE = "none"
"""The label of what was not decided."""

UNKNOWN = "unknown"
"""The one label of every model that is not in the table."""

_DURATION_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)

TASK_LABELS = {
    number: name.removeprefix("TASK_").lower() for name, number in inference_pb2.Task.items()
}


class CallLabels(NamedTuple):
    """Where a call went and how it ended."""

    task: str
    group: str
    model: str
    version: str
    code: str
    reason: str


class RouterMetrics:
    """Counters of calls; children are kept, as looking them up costs more than counting."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "braid_router_requests_total",
            "Calls ended, by what was decided and by status; reason is why that group was taken.",
            ("task", "group", "model", "version", "code", "reason"),
            registry=registry,
        )
        self._failures = Counter(
            "braid_router_failures_total",
            "Calls ended with an error, by its ErrorInfo reason.",
            ("reason",),
            registry=registry,
        )
        self._durations = Histogram(
            "braid_router_request_duration_seconds",
            "Time from a call's arrival to its end.",
            ("task", "group"),
            buckets=_DURATION_BUCKETS_S,
            registry=registry,
        )
        self._retries = Counter(
            "braid_router_retries_total",
            "Failed calls that might go to another node, by whether the budget let them.",
            ("allowed",),
            registry=registry,
        )
        self._ejections = Counter(
            "braid_router_ejections_total",
            "Nodes taken out of the choice because their calls failed.",
            ("group",),
            registry=registry,
        )
        self._hedges = Counter(
            "braid_router_hedges_total",
            "Slow calls sent to a second node as well, by which of the two answered.",
            ("answered",),
            registry=registry,
        )
        self._admissions = Counter(
            "braid_router_admissions_total",
            "Calls that found no room on a node, by what became of them.",
            ("group", "outcome"),
            registry=registry,
        )
        self._mirrored = Counter(
            "braid_router_mirrored_total",
            "Copies of calls for comparison, by what became of them.",
            ("outcome",),
            registry=registry,
        )
        self.retry_budget = Gauge(
            "braid_router_retry_budget", "Second tries that calls have paid for.", registry=registry
        )
        self._in_flight = Gauge(
            "braid_router_requests_in_flight", "Calls that run now.", registry=registry
        )
        self._children: dict[CallLabels, tuple[Counter, Histogram]] = {}

    def count_in_flight(self, calls: Callable[[], int]) -> None:
        """Reads the number of calls that run from ``calls``."""
        self._in_flight.set_function(calls)

    def finished(self, labels: CallLabels, duration_s: float) -> None:
        """Counts one call."""
        counter, histogram = self._children.get(labels) or self._add(labels)
        counter.inc()
        histogram.observe(duration_s)

    def failed(self, reason: str) -> None:
        """Counts an error."""
        self._failures.labels(reason).inc()

    def retried(self, *, allowed: bool) -> None:
        """Counts a second try, or one that was not made."""
        self._retries.labels("yes" if allowed else "no").inc()

    def admission(self, group: str, outcome: str) -> None:
        """Counts a call that found its group full."""
        self._admissions.labels(group, outcome).inc()

    def mirrored(self, outcome: str) -> None:
        """Counts a copy that was compared, failed, or was dropped."""
        self._mirrored.labels(outcome).inc()

    def ejected(self, group: str) -> None:
        """Counts a node that was taken out."""
        self._ejections.labels(group).inc()

    def hedged(self, *, won: bool) -> None:
        """Counts a second node that was asked; ``won``: it was the one that answered."""
        self._hedges.labels("second" if won else "first").inc()

    def _add(self, labels: CallLabels) -> tuple[Counter, Histogram]:
        counter = self._requests.labels(*labels)
        children = (counter, self._durations.labels(labels.task, labels.group))
        self._children[labels] = children
        return children
