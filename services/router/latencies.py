"""Latencies kept by size instead of one by one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

GROWTH = 1.1
"""Each size is so many times the one before: a quantile is off by 5 % at most."""

SMALLEST_S = 1e-4

_PER_SIZE = 1 / math.log(GROWTH)


class Latencies:
    """How many latencies there were of each size."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()

    def note(self, seconds: float) -> None:
        """Adds one."""
        size = int(math.log(max(seconds, SMALLEST_S) / SMALLEST_S) * _PER_SIZE)
        self._counts[size] += 1

    def add(self, other: Latencies) -> None:
        """Adds all of the other's."""
        self._counts.update(other._counts)

    def quantile(self, part: float) -> float:
        """The latency in seconds that ``part`` of all do not exceed; 0 where there are none."""
        rank = part * self._counts.total()
        for size, count in sorted(self._counts.items()):
            rank -= count
            if rank <= 0:
                return float(SMALLEST_S * GROWTH ** (size + 0.5))
        return 0.0


def merged(parts: Iterable[Latencies]) -> Latencies:
    """All of the parts' together."""
    whole = Latencies()
    for part in parts:
        whole.add(part)
    return whole
