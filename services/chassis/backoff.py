"""How long to wait before the next attempt."""

from __future__ import annotations

from random import Random

_WAITS_S = (0.1, 0.5, 1.0)
_JITTER = 0.2
_HEALTHY_S = 2.0


class Backoff:
    """Waits of about 0.1, 0.5, then 1 s each, jittered; short again after an attempt that held.

    With two calls an attempt this stays under five calls a second.
    """

    def __init__(self, random: Random | None = None) -> None:
        self._random = random or Random()
        self._failures = 0

    def next(self, lasted_s: float = 0.0) -> float:
        """Seconds to wait after an attempt that lasted ``lasted_s`` until it failed."""
        if lasted_s >= _HEALTHY_S:
            self._failures = 0
        wait_s = _WAITS_S[min(self._failures, len(_WAITS_S) - 1)]
        self._failures += 1
        return wait_s * self._random.uniform(1 - _JITTER, 1 + _JITTER)
