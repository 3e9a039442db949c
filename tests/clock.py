"""A clock that tests set."""

from __future__ import annotations


class Clock:
    """Stands still until it is moved."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        """The time, s."""
        return self.now
