"""Limits of a worker: from its settings, and hot from its group's record."""

from __future__ import annotations

from dataclasses import dataclass, replace

from braid.config.v1.config_pb2 import Group
from services.generation.load import EngineLimits

_HOT = (
    "max_steps",
    "max_batch_size",
    "max_concurrency",
    "queue_length",
    "max_new_tokens",
    "max_context",
    "strategy",
    "confidence_threshold",
    "factor",
    "entropy_bound",
)


@dataclass(frozen=True, slots=True)
class Limits:
    """What one worker takes on; names as in the contract."""

    max_steps: int
    max_batch_size: int
    max_concurrency: int
    queue_length: int
    max_new_tokens: int
    max_context: int
    strategy: str | None = None
    """How a block is denoised where a call does not say; None leaves it to the model."""
    confidence_threshold: float | None = None
    factor: float | None = None
    entropy_bound: float | None = None

    def under(self, group: Group) -> Limits:
        """These limits with the group's in their place.

        Slots and context are set aside at start: a group can lower them, and
        asking for more than there is gives what there is.
        """
        given = {name: getattr(group, name) for name in _HOT if group.HasField(name)}
        for name in ("max_batch_size", "max_context"):
            if name in given:
                given[name] = min(given[name], getattr(self, name))
        return replace(self, **given)

    def for_engine(self) -> EngineLimits:
        """The part that the step loop keeps to."""
        return EngineLimits(max_batch_size=self.max_batch_size, queue_length=self.queue_length)
