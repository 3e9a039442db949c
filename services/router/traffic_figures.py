"""What became of the calls of each version in the last minutes."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import grpc

from services.chassis.errors import ConstraintNotMet
from services.router.latencies import Latencies

SLOT_S = 10.0
LONGEST_S = 600.0
"""How far back figures go."""

Version = tuple[str, str]
"""Model and version."""


@dataclass(slots=True)
class VersionFigures:
    """Calls of one version. Latencies are those of calls that ended OK."""

    codes: Counter[str] = field(default_factory=Counter)
    latencies: Latencies = field(default_factory=Latencies)
    judged: int = 0
    """Calls with a constraint whose answer was whole, and judged by it."""
    valid: int = 0
    """Those among them whose answer met it."""

    def note(self, code: grpc.StatusCode, error: str, seconds: float, *, constrained: bool) -> None:
        """Adds a call."""
        self.codes[code.name] += 1
        if code is grpc.StatusCode.OK:
            self.latencies.note(seconds)
        if constrained and (code is grpc.StatusCode.OK or error == ConstraintNotMet.reason):
            self.judged += 1
            self.valid += code is grpc.StatusCode.OK

    def add(self, other: VersionFigures) -> None:
        """Adds all of the other's calls."""
        self.codes.update(other.codes)
        self.latencies.add(other.latencies)
        self.judged += other.judged
        self.valid += other.valid


F = TypeVar("F")
K = TypeVar("K")


class Recent(Generic[K, F]):
    """Figures by key, kept in slots of time so that old ones fall away."""

    def __init__(self, new: Callable[[], F], clock: Callable[[], float] = time.monotonic) -> None:
        self._new = new
        self._clock = clock
        self._slots: deque[tuple[int, dict[K, F]]] = deque(maxlen=int(LONGEST_S / SLOT_S))

    def now(self, key: K) -> F:
        """The figures of the present slot, to add to."""
        slot = int(self._clock() / SLOT_S)
        if not self._slots or self._slots[-1][0] != slot:
            self._slots.append((slot, {}))
        figures = self._slots[-1][1]
        found = figures.get(key)
        if found is None:
            found = figures[key] = self._new()
        return found

    def since(self, seconds: float) -> Iterator[tuple[K, F]]:
        """Figures of each slot that began at most so long ago, by key; a key comes often."""
        oldest = int((self._clock() - seconds) / SLOT_S)
        for slot, figures in self._slots:
            if slot >= oldest:
                yield from figures.items()


class TrafficFigures:
    """Figures by version."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._recent: Recent[Version, VersionFigures] = Recent(VersionFigures, clock)

    def note(
        self,
        version: Version,
        code: grpc.StatusCode,
        error: str,
        seconds: float,
        *,
        constrained: bool,
    ) -> None:
        """Adds a call that ended now; ``error`` is its ErrorInfo reason."""
        self._recent.now(version).note(code, error, seconds, constrained=constrained)

    def of_last(self, seconds: float, model: str = "") -> dict[Version, VersionFigures]:
        """Figures of the last ``seconds``, of one model or of all."""
        whole: dict[Version, VersionFigures] = {}
        for version, figures in self._recent.since(seconds):
            if not model or version[0] == model:
                whole.setdefault(version, VersionFigures()).add(figures)
        return whole
