"""Whether a candidate does worse than the stable version, beyond chance."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from braid.config.v1 import config_pb2

Z = 3.0
"""Width of the bounds in standard errors. Evidence is looked at again and again, so that far
more than one look in 700 must not go wrong."""

_ERRORS, _INVALID, _RATIO, _SAMPLE = 0.005, 0.02, 1.5, 100


@dataclass(frozen=True, slots=True)
class Limits:
    """The guards in force."""

    errors: float
    invalid: float
    latency_ratio: float
    min_sample: int


def limits_of(guards: config_pb2.RolloutGuards) -> Limits:
    """The guards, with the defaults of those that are unset."""
    return Limits(
        guards.error_rate_increase if guards.HasField("error_rate_increase") else _ERRORS,
        guards.invalid_rate_increase if guards.HasField("invalid_rate_increase") else _INVALID,
        guards.latency_ratio if guards.HasField("latency_ratio") else _RATIO,
        guards.min_sample if guards.HasField("min_sample") else _SAMPLE,
    )


def wilson(hits: int, count: int) -> tuple[float, float]:
    """Bounds of a proportion (E. B. Wilson 1927); 0 and 1 where nothing was counted."""
    if count == 0:
        return 0.0, 1.0
    part, spread = hits / count, Z * Z / count
    center = (part + spread / 2) / (1 + spread)
    half = Z / (1 + spread) * sqrt(part * (1 - part) / count + spread / (4 * count))
    return max(center - half, 0.0), min(center + half, 1.0)


def least_increase(hits: int, count: int, base_hits: int, base_count: int) -> float:
    """Lower bound of how far one proportion is above another (R. G. Newcombe 1998, method 10)."""
    if not (count and base_count):
        return -1.0
    part, base = hits / count, base_hits / base_count
    low, high = wilson(hits, count)[0], wilson(base_hits, base_count)[1]
    return part - base - sqrt((part - low) ** 2 + (high - base) ** 2)


def breach(
    candidate: config_pb2.VersionSample, stable: config_pb2.VersionSample, limits: Limits
) -> str:
    """Which limit the candidate surely breaks; empty where none."""
    errors = least_increase(candidate.errors, candidate.count, stable.errors, stable.count)
    if errors > limits.errors:
        return f"error rate {_rate(candidate.errors, candidate.count)}, stable version " + _rate(
            stable.errors, stable.count
        )
    invalid = least_increase(candidate.invalid, candidate.judged, stable.invalid, stable.judged)
    if invalid > limits.invalid:
        return f"invalid answers {_rate(candidate.invalid, candidate.judged)}, stable version " + (
            _rate(stable.invalid, stable.judged)
        )
    if _slower(candidate, stable, limits):
        return (
            f"95th percentile of latency {candidate.p95_seconds:.3f} s, stable version "
            f"{stable.p95_seconds:.3f} s"
        )
    return ""


def doubt(
    candidate: config_pb2.VersionSample, stable: config_pb2.VersionSample, limits: Limits
) -> str:
    """What keeps the candidate from going on though it breaks nothing for sure."""
    if candidate.count < limits.min_sample:
        return f"{candidate.count} of {limits.min_sample} calls seen"
    if _above(candidate.errors, candidate.count, stable.errors, stable.count) > limits.errors:
        return "error rate too high so far"
    if _above(candidate.invalid, candidate.judged, stable.invalid, stable.judged) > limits.invalid:
        return "too many invalid answers so far"
    return ""


def _slower(
    candidate: config_pb2.VersionSample, stable: config_pb2.VersionSample, limits: Limits
) -> bool:
    seen = min(candidate.count, stable.count) >= limits.min_sample
    return seen and candidate.p95_seconds > limits.latency_ratio * stable.p95_seconds


def _above(hits: int, count: int, base_hits: int, base_count: int) -> float:
    return hits / max(count, 1) - base_hits / max(base_count, 1)


def _rate(hits: int, count: int) -> str:
    return f"{hits / max(count, 1):.2%} of {count}"
