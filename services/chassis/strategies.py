"""Decoding strategies as the contract names them, and the parameter each goes by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from braid.config.v1.config_pb2 import Group
from braid.inference.v1.inference_pb2 import Diffusion
from services.chassis.violations import Violations

MAX_FACTOR = 64.0
MAX_ENTROPY_BOUND = 64.0
"""In nats."""

PARAMETER_OF: Mapping[str, str | None] = {
    "threshold": "confidence_threshold",
    "distance_threshold": "confidence_threshold",
    "frontier_run": "confidence_threshold",
    "factor": "factor",
    "entropy_bound": "entropy_bound",
    "margin": "confidence_threshold",
    "static_quota": None,
    "random": None,
}
"""Every strategy there is; None where it goes by the number of steps alone."""


@dataclass(frozen=True, slots=True)
class _Range:
    low: float
    high: float
    over: bool
    """Whether ``low`` itself is left out."""


_RANGES: Mapping[str, _Range] = {
    "confidence_threshold": _Range(0, 1, over=True),
    "factor": _Range(0, MAX_FACTOR, over=True),
    "entropy_bound": _Range(0, MAX_ENTROPY_BOUND, over=False),
}
PARAMETERS = tuple(_RANGES)
"""All that a strategy may go by."""


def check_strategy(message: Diffusion | Group, path: str, faults: Violations) -> None:
    """Notes a strategy that is none, and its parameters out of range, as fields of ``path``."""
    if message.HasField("strategy") and message.strategy not in PARAMETER_OF:
        faults.add(f"{path}.strategy", f"must be one of {', '.join(PARAMETER_OF)}")
    for name, bounds in _RANGES.items():
        if message.HasField(name):
            value = getattr(message, name)
            faults.number(f"{path}.{name}", value, bounds.low, bounds.high, over=bounds.over)


def followers_of(parameter: str) -> tuple[str, ...]:
    """The strategies that go by ``parameter``; none for what is no strategy's own."""
    return tuple(name for name, own in PARAMETER_OF.items() if own == parameter)
