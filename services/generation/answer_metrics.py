"""What answers cost and how long they took, counted as each ends."""

from __future__ import annotations

from functools import partial

from prometheus_client import CollectorRegistry, Counter, Histogram

from services.generation.types import Finished

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
TOKENS_PER_FORWARD = (0.5, 1, 1.5, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32)
STEPS_PER_BLOCK = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32)

COUNTERS = {
    "braid_prompt_tokens": ("prompt_tokens", "Tokens of inputs."),
    "braid_prompt_tokens_cached": (
        "cached_tokens",
        "Tokens of inputs that another call's keys and values served.",
    ),
    "braid_generation_tokens": ("completion_tokens", "Tokens generated."),
    "braid_denoise_steps": ("denoise_steps", "Denoising steps of all blocks."),
    "braid_forward_passes": ("forward_passes", "Forward passes, summed over calls."),
    "braid_forced_commits": (
        "forced_commits",
        "Tokens committed below their bar, because steps or time ran out.",
    ),
    "braid_discarded_tokens": (
        "discarded_tokens",
        "Tokens that were computed and not sent, for a stop text came before them.",
    ),
}
"""Counter by name: the field of an answer's usage that it adds up, and what that means."""


class AnswerMetrics:
    """Figures of whole answers in one registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        duration = partial(Histogram, buckets=SECONDS, registry=registry)
        self._counters = {
            field: Counter(name, meaning, registry=registry)
            for name, (field, meaning) in COUNTERS.items()
        }
        self._best_effort = Counter(
            "braid_best_effort_answers", "Answers with forced commits.", registry=registry
        )
        self._repairs = Counter(
            "braid_repairs", "Answers generated again for their constraint.", registry=registry
        )
        self._first_token = duration(
            "braid_time_to_first_token_seconds",
            "From a call's arrival to its first final text.",
            ("task",),
        )
        self._queue_time = duration(
            "braid_request_queue_time_seconds", "From a call's arrival to its first forward pass."
        )
        self._prefill_time = duration(
            "braid_request_prefill_time_seconds",
            "From a call's first forward pass until its input was computed.",
        )
        self._decode_time = duration(
            "braid_request_decode_time_seconds", "From there to the end of the call's answer."
        )
        self._tokens_per_forward = Histogram(
            "braid_tokens_per_forward",
            "Tokens generated per forward pass of a call.",
            buckets=TOKENS_PER_FORWARD,
            registry=registry,
        )
        self._steps_per_block = Histogram(
            "braid_denoise_steps_per_block",
            "Denoising steps that a call took for each of its blocks.",
            buckets=STEPS_PER_BLOCK,
            registry=registry,
        )

    def add(self, task: str, finished: Finished) -> None:
        """Counts one answer."""
        usage, timing = finished.usage, finished.timing
        for field, counter in self._counters.items():
            counter.inc(getattr(usage, field))
        self._best_effort.inc(finished.best_effort)
        self._repairs.inc(finished.repairs)
        self._first_token.labels(task).observe(timing.first_output)
        self._queue_time.observe(timing.queue)
        self._prefill_time.observe(timing.prefill)
        self._decode_time.observe(timing.decode)
        self._tokens_per_forward.observe(usage.tokens_per_forward)
        if usage.blocks:
            self._steps_per_block.observe(usage.denoise_steps / usage.blocks)
