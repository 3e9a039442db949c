"""What a worker counts; one set for both paradigms, label values from closed sets."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Enum, Gauge, Histogram
from prometheus_client.metrics_core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from services.generation.answer_metrics import SECONDS, AnswerMetrics
from services.generation.experts import ExpertLoad
from services.generation.lifecycle import Lifecycle, State
from services.generation.memory_plan import MemoryPlan
from services.generation.node_status import StatusBoard
from services.generation.types import Finished

GAUGES = {
    "braid_num_requests_running": ("running", "Calls in the step loop."),
    "braid_num_requests_waiting": ("queued", "Calls waiting for a slot."),
    "braid_pending_forwards": ("pending_forwards", "Forward passes that calls still need."),
    "braid_step_seconds": ("step_seconds", "Duration of a step, averaged over the latest."),
    "braid_kv_slots": ("slots", "Most calls that run at once."),
    "braid_ready": ("accepting", "1 while new calls are taken."),
    "braid_memory_ok": ("memory_ok", "1 while memory is below its limit."),
}
"""Gauge by name: the status field it shows, and what that means."""


class WorkerMetrics:
    """The worker's metrics in one registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        counter = partial(Counter, registry=registry)
        gauge = partial(Gauge, registry=registry)
        self.requests = counter("braid_requests", "Calls that ended.", ("task", "code"))
        self.latency = Histogram(
            "braid_e2e_request_latency_seconds",
            "From a call's arrival to its end.",
            ("task",),
            buckets=SECONDS,
            registry=registry,
        )
        self.constraint_violations = counter(
            "braid_constraint_violations",
            "Answers that were kept to a form and broke it; more than 0 is a fault.",
        )
        self.weights_mismatches = counter(
            "braid_weights_mismatches", "Files set aside for a wrong hash."
        )
        self.refused_versions = counter(
            "braid_refused_versions",
            "Versions that could not take the place of the one that serves.",
        )
        self.warmup_seconds = gauge("braid_warmup_seconds", "Duration of the warm-up.")
        self.memory_plan = gauge(
            "braid_memory_plan_bytes",
            "What the model was planned to take, by part; room is what there was for it.",
            ("part",),
        )
        self.parameters = gauge(
            "braid_model_parameters",
            "Parameters of the model: total, and active, which one token passes.",
            ("kind",),
        )
        self.group_valid = gauge(
            "braid_group_config_valid", "1 where the group's stored record is the one in force."
        )
        self.group_valid.set(1)
        self._answers = AnswerMetrics(registry)
        self._registry = registry
        self._experts = _ExpertTokens()
        registry.register(self._experts)

    def follow(self, lifecycle: Lifecycle, board: StatusBoard) -> None:
        """Exports the node's state, and its load as it is at each scrape."""
        state = Enum(
            "braid_node_state",
            "Where the node is in its life.",
            states=[state.value for state in State],
            registry=self._registry,
        )
        lifecycle.watch(lambda: state.state(lifecycle.state.value))
        for name, (field, meaning) in GAUGES.items():
            gauge = Gauge(name, meaning, registry=self._registry)
            gauge.set_function(partial(_read, board, field))

    def follow_experts(self, load: ExpertLoad) -> None:
        """Exports a mixture's load as it is at each scrape; nothing for a dense model."""
        self._experts.load = load

    def planned(self, plan: MemoryPlan) -> None:
        """Exports the plan of the model that is about to be loaded."""
        for part, count in {**plan.parts, "room": plan.room_bytes}.items():
            self.memory_plan.labels(part).set(count)
        self.parameters.labels("total").set(plan.size.parameters_total)
        self.parameters.labels("active").set(plan.size.parameters_active)

    def ended(self, task: str, code: str, seconds: float) -> None:
        """Counts one call, however it ended."""
        self.requests.labels(task, code).inc()
        self.latency.labels(task).observe(seconds)

    def answered(self, task: str, finished: Finished) -> None:
        """Counts the work of one answer."""
        self._answers.add(task, finished)


class _ExpertTokens(Collector):
    """One series for each expert that the model has."""

    def __init__(self) -> None:
        self.load: ExpertLoad | None = None

    def collect(self) -> Iterable[Metric]:
        """Counts so far."""
        family = CounterMetricFamily(
            "braid_expert_tokens",
            "Token rows that an expert computed.",
            labels=("layer", "expert"),
        )
        for layer, counts in (self.load.totals() if self.load else {}).items():
            for expert, count in enumerate(counts):
                family.add_metric((str(layer), str(expert)), count)
        yield family


def _read(board: StatusBoard, field: str) -> float:
    return float(getattr(board.status(), field))
