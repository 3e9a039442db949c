"""The latest of a stream of figures, and what most of them stay below."""

from __future__ import annotations

import math
from collections import deque


class Recent:
    """The latest ``size`` figures."""

    def __init__(self, size: int) -> None:
        self._figures: deque[float] = deque(maxlen=size)

    def __len__(self) -> int:
        return len(self._figures)

    def note(self, figure: float) -> None:
        """Adds one; the oldest leaves where there are too many."""
        self._figures.append(figure)

    def forget(self) -> None:
        """Drops the oldest, if there is any."""
        if self._figures:
            self._figures.popleft()

    def quantile(self, share: float, default: float = 0.0) -> float:
        """The least figure that ``share`` of them do not exceed; ``default`` without any."""
        ranked = sorted(self._figures)
        return ranked[max(0, math.ceil(share * len(ranked)) - 1)] if ranked else default
