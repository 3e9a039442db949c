"""What an engine may take on, and what it has taken on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """What the engine may take on; can be replaced between any two steps.

    ``max_concurrency`` sequences hold a slot at once (0: as many as there are
    slots), ``max_batch_size`` of them share a forward, ``max_forward_rows``
    token rows go into one, and ``queue_length`` jobs wait.
    """

    max_batch_size: int = 8
    queue_length: int = 64
    max_concurrency: int = 0
    max_forward_rows: int = 512


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """The engine's load, for the router and for metrics."""

    running: int
    queued: int
    pending_forwards: int
    """Forward passes that the running and waiting jobs may still need, as estimated
    from max_new_tokens and the tokens per forward of finished answers."""
    step_seconds: float
    """Moving average of one step; 0 before the first."""
    slots: int
    busy: bool
    """Whether any job runs or waits."""
    last_step_at: float
    """time.monotonic() at the end of the last look: while ``busy``, its age tells a
    hanging engine from one at work."""
    draining: bool
