"""What calls and their copies came to, side by side."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from google.protobuf.message import DecodeError

from braid.inference.v1 import inference_pb2 as pb
from services.router.features import Features
from services.router.latencies import Latencies
from services.router.traffic_figures import Recent

Pair = tuple[str, str, str, str, str]
"""Group, model and version of the copies; model and version of the originals."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call came to: its status, whether its answer is whole, its length and time."""

    code: str
    valid: bool
    tokens: int
    seconds: float


@dataclass(slots=True)
class Side:
    """Outcomes of originals or of copies, added up."""

    codes: Counter[str] = field(default_factory=Counter)
    valid: int = 0
    tokens: int = 0
    latencies: Latencies = field(default_factory=Latencies)

    def note(self, outcome: Outcome) -> None:
        """Adds one."""
        self.codes[outcome.code] += 1
        self.valid += outcome.valid
        self.tokens += outcome.tokens
        self.latencies.note(outcome.seconds)

    def add(self, other: Side) -> None:
        """Adds all of the other's."""
        self.codes.update(other.codes)
        self.valid += other.valid
        self.tokens += other.tokens
        self.latencies.add(other.latencies)


@dataclass(slots=True)
class Comparison:
    """The same calls, original and copy."""

    original: Side = field(default_factory=Side)
    copy: Side = field(default_factory=Side)


class Comparisons:
    """Comparisons of the last minutes, by pair."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._recent: Recent[Pair, Comparison] = Recent(Comparison, clock)

    def note(self, pair: Pair, original: Outcome, copy: Outcome) -> None:
        """Adds a call and its copy."""
        comparison = self._recent.now(pair)
        comparison.original.note(original)
        comparison.copy.note(copy)

    def of_last(self, seconds: float, model: str = "") -> dict[Pair, Comparison]:
        """Comparisons of the last ``seconds`` in which the model is on either side."""
        whole: dict[Pair, Comparison] = {}
        for pair, comparison in self._recent.since(seconds):
            if not model or model in (pair[1], pair[3]):
                kept = whole.setdefault(pair, Comparison())
                kept.original.add(comparison.original)
                kept.copy.add(comparison.copy)
        return whole


def answered(answer: bytes, features: Features, seconds: float, *, stream: bool) -> Outcome:
    """An answer as it is compared: valid where it ended by itself, or had no form to keep."""
    try:
        if stream:
            end: pb.Finished | pb.GenerateResponse = pb.GenerateStreamResponse.FromString(
                answer
            ).finished
        else:
            end = pb.GenerateResponse.FromString(answer)
    except DecodeError:
        return Outcome("OK", False, 0, seconds)
    whole = not features.constraint or end.finish_reason == pb.FINISH_REASON_STOP
    return Outcome("OK", whole, end.usage.completion_tokens, seconds)
