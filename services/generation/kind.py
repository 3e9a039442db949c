"""What tells one sort of worker from another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from transformers import PreTrainedModel

from services.generation.checkpoint import Checkpoint
from services.generation.sequence import Family
from services.generation.types import Paradigm


@dataclass(frozen=True, slots=True)
class Kind:
    """One sort of worker: what it is called, how its models generate, what decodes them."""

    name: str
    paradigm: Paradigm
    open_family: Callable[[Checkpoint, PreTrainedModel], Family]
