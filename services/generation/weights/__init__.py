"""A version's files: from their store into a cache of verified content. Knows no torch."""

from services.generation.weights.cache import WeightCache
from services.generation.weights.faults import (
    EXIT_MISMATCH,
    FetchStopped,
    WeightsMismatch,
    WeightsUnavailable,
)
from services.generation.weights.transfer import FetchPolicy

__all__ = [
    "EXIT_MISMATCH",
    "FetchPolicy",
    "FetchStopped",
    "WeightCache",
    "WeightsMismatch",
    "WeightsUnavailable",
]
