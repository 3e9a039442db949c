"""What a worker counts; one set for both paradigms, label values from closed sets."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Enum, Gauge, Histogram
from prometheus_client.metrics_core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from services.generation.experts import ExpertLoad
from services.generation.lifecycle import Lifecycle, State
from services.generation.memory_plan import MemoryPlan
from services.generation.node_status import StatusBoard
from services.generation.types import Finished

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
TOKENS_PER_FORWARD = (0.5, 1, 1.5, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32)
STEPS_PER_BLOCK = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32)

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
        self.requests = Counter(
            "braid_requests", "Calls that ended.", ("task", "code"), registry=registry
        )
        self.latency = Histogram(
            "braid_e2e_request_latency_seconds",
            "From a call's arrival to its end.",
            ("task",),
            buckets=SECONDS,
            registry=registry,
        )
        self.first_token = Histogram(
            "braid_time_to_first_token_seconds",
            "From a call's arrival to its first final text.",
            ("task",),
            buckets=SECONDS,
            registry=registry,
        )
        self.queue_time = Histogram(
            "braid_request_queue_time_seconds",
            "From a call's arrival to its first forward pass.",
            buckets=SECONDS,
            registry=registry,
        )
        self.prompt_tokens = Counter("braid_prompt_tokens", "Tokens of inputs.", registry=registry)
        self.cached_tokens = Counter(
            "braid_prompt_tokens_cached",
            "Tokens of inputs that another call's keys and values served.",
            registry=registry,
        )
        self.generation_tokens = Counter(
            "braid_generation_tokens", "Tokens generated.", registry=registry
        )
        self.denoise_steps = Counter(
            "braid_denoise_steps", "Denoising steps of all blocks.", registry=registry
        )
        self.forward_passes = Counter(
            "braid_forward_passes", "Forward passes, summed over calls.", registry=registry
        )
        self.tokens_per_forward = Histogram(
            "braid_tokens_per_forward",
            "Tokens generated per forward pass of a call.",
            buckets=TOKENS_PER_FORWARD,
            registry=registry,
        )
        self.best_effort = Counter(
            "braid_best_effort_answers", "Answers with forced commits.", registry=registry
        )
        self.steps_per_block = Histogram(
            "braid_denoise_steps_per_block",
            "Denoising steps that a call took for each of its blocks.",
            buckets=STEPS_PER_BLOCK,
            registry=registry,
        )
        self.forced_commits = Counter(
            "braid_forced_commits",
            "Tokens committed below their bar, because steps or time ran out.",
            registry=registry,
        )
        self.discarded_tokens = Counter(
            "braid_discarded_tokens",
            "Tokens that were computed and not sent, for a stop text came before them.",
            registry=registry,
        )
        self.prefill_time = Histogram(
            "braid_request_prefill_time_seconds",
            "From a call's first forward pass until its input was computed.",
            buckets=SECONDS,
            registry=registry,
        )
        self.decode_time = Histogram(
            "braid_request_decode_time_seconds",
            "From there to the end of the call's answer.",
            buckets=SECONDS,
            registry=registry,
        )
        self.repairs = Counter(
            "braid_repairs", "Answers generated again for their constraint.", registry=registry
        )
        self.constraint_violations = Counter(
            "braid_constraint_violations",
            "Answers that were kept to a form and broke it; more than 0 is a fault.",
            registry=registry,
        )
        self.weights_mismatches = Counter(
            "braid_weights_mismatches", "Files set aside for a wrong hash.", registry=registry
        )
        self.refused_versions = Counter(
            "braid_refused_versions",
            "Versions that could not take the place of the one that serves.",
            registry=registry,
        )
        self.warmup_seconds = Gauge(
            "braid_warmup_seconds", "Duration of the warm-up.", registry=registry
        )
        self.memory_plan = Gauge(
            "braid_memory_plan_bytes",
            "What the model was planned to take, by part; room is what there was for it.",
            ("part",),
            registry=registry,
        )
        self.parameters = Gauge(
            "braid_model_parameters",
            "Parameters of the model: total, and active, which one token passes.",
            ("kind",),
            registry=registry,
        )
        self.group_valid = Gauge(
            "braid_group_config_valid",
            "1 where the group's stored record is the one in force.",
            registry=registry,
        )
        self.group_valid.set(1)
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
        usage, timing = finished.usage, finished.timing
        self.first_token.labels(task).observe(timing.first_output)
        self.queue_time.observe(timing.queue)
        self.prompt_tokens.inc(usage.prompt_tokens)
        self.cached_tokens.inc(usage.cached_tokens)
        self.generation_tokens.inc(usage.completion_tokens)
        self.denoise_steps.inc(usage.denoise_steps)
        self.forward_passes.inc(usage.forward_passes)
        self.tokens_per_forward.observe(usage.tokens_per_forward)
        self.best_effort.inc(finished.best_effort)
        self.repairs.inc(finished.repairs)
        self.prefill_time.observe(timing.prefill)
        self.decode_time.observe(timing.decode)
        self.forced_commits.inc(usage.forced_commits)
        self.discarded_tokens.inc(usage.discarded_tokens)
        if usage.blocks:
            self.steps_per_block.observe(usage.denoise_steps / usage.blocks)


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
