"""How long a step will take, learnt from those before it.

A forward's time follows from its token rows; what machine and other threads add to it
is learnt apart, over steps of every size. Both are needed to promise an end: the likely
time to plan by, and one that is hardly ever exceeded to decide by whether a step still fits.
"""

from __future__ import annotations

import math
import threading

import numpy as np

from services.generation.recent import Recent

CERTAINTY = 0.95
"""Share of steps that take no longer than what is surely expected."""
_STEPS_PER_SIZE, _STEPS_OF_NOISE = 15, 64
_SIZES_PER_DOUBLING = 4


class StepClock:
    """Times of steps by their rows; safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._times: dict[int, Recent] = {}
        """Steps of about the same size."""
        self._noise = Recent(_STEPS_OF_NOISE)
        """Times of steps as shares of the likely one."""
        self._sizes: list[float] = []
        self._likely: list[float] = []
        """The line through the likely times: seconds at each of ``_sizes``."""
        self._excess = 1.0

    def note(self, rows: int, seconds: float) -> None:
        """A step over ``rows`` rows took ``seconds``."""
        with self._lock:
            if self._sizes:
                self._noise.note(seconds / self._at(rows))
            self._times.setdefault(_size(rows), Recent(_STEPS_PER_SIZE)).note(seconds)
            self._draw()

    def doubt(self, rows: int) -> None:
        """Something was refused by what this clock says of ``rows`` rows.

        Such words are forgotten one by one: where nothing is tried any more, nothing
        else could put them right.
        """
        with self._lock:
            self._noise.note(1.0)
            times = self._times.get(_size(rows))
            if times is not None:
                times.forget()
                if not times:
                    del self._times[_size(rows)]
            self._draw()

    def expect(self, rows: int, surely: bool = False) -> float:
        """Seconds that a step over ``rows`` rows takes as a rule, or hardly ever exceeds.

        0 if nothing is known.
        """
        with self._lock:
            return self._at(rows) * (self._excess if surely else 1.0)

    def forwards(self, seconds: float, first: int, later: int) -> int | None:
        """How many forwards surely fit into ``seconds``, but at least one.

        The next one has ``first`` rows, those behind it ``later``. None: nothing is known.
        """
        usual = self.expect(later)
        if not usual:
            return None
        spare = seconds - self.expect(first) - self.expect(later, surely=True)
        return 1 + max(0, math.floor(spare / usual) + 1)

    def _at(self, rows: int) -> float:
        """On the line; beyond its end in proportion."""
        if not self._sizes:
            return 0.0
        beyond = max(1.0, rows / self._sizes[-1])
        return float(np.interp(rows, self._sizes, self._likely)) * beyond

    def _draw(self) -> None:
        """The line anew. More rows never take less time: a first, slow step of its size is not
        believed where larger ones were quicker."""
        sizes = sorted(self._times)
        self._sizes = [2 ** (size / _SIZES_PER_DOUBLING) for size in sizes]
        medians = [self._times[size].quantile(0.5) for size in reversed(sizes)]
        self._likely = np.minimum.accumulate(medians)[::-1].tolist()
        self._excess = max(1.0, self._noise.quantile(CERTAINTY, 1.0))


def _size(rows: int) -> int:
    return round(_SIZES_PER_DOUBLING * math.log2(max(1, rows)))
