"""A model as the step loop sees it."""

from __future__ import annotations

from collections.abc import Sequence as Many
from typing import Protocol

import torch
from torch import Tensor
from transformers import PreTrainedModel

from services.generation.card import ModelCard
from services.generation.experts import ExpertLoad
from services.generation.sequence import Head, Rows
from services.generation.slot_model import SlotModel


class Prefixes(Protocol):
    """Heads of prompts that are kept for others."""

    def restore(self, slot: int, head: Head) -> int:
        """Copies what is kept of the head into a slot; returns the tokens it has by that."""
        ...

    def keep(self, slot: int, head: Head) -> None:
        """Copies the head, which the slot holds, out of it."""
        ...


class Model(Protocol):
    """Rows in, logits of the wanted ones out."""

    slots: int
    max_context: int
    expert_load: ExpertLoad

    @property
    def prefixes(self) -> Prefixes:
        """What its slots have in common."""
        ...

    def forward(self, batch: Many[tuple[int, Rows]]) -> Tensor:
        """Runs (slot, rows) pairs; returns the wanted rows' logits, in order, as float32."""
        ...

    def clear(self, slot: int) -> None:
        """Forgets what a slot held, for it may not be finite."""
        ...


class SelfDrivenModel:
    """Stands in a model's place where sequences run their own forwards and ask for no rows.

    Its slots are a limit alone: what a sequence caches is its own.
    """

    def __init__(self, module: PreTrainedModel, *, slots: int, max_context: int) -> None:
        self.slots = slots
        self.max_context = max_context
        self.prefixes = _NoPrefixes()
        self.expert_load = ExpertLoad(module)

    def forward(self, batch: Many[tuple[int, Rows]]) -> Tensor:
        """No rows, no logits."""
        return torch.empty(0, 1)

    def clear(self, slot: int) -> None:
        """Nothing is in a slot."""


class _NoPrefixes:
    def restore(self, slot: int, head: Head) -> int:
        """Nothing was kept."""
        return 0

    def keep(self, slot: int, head: Head) -> None:
        """Nothing is kept."""


def model_of(
    card: ModelCard,
    module: PreTrainedModel,
    *,
    slots: int,
    max_context: int,
    prefix_bytes: int = 0,
) -> Model:
    """``module`` as its card says that it is run."""
    if card.self_driven:
        return SelfDrivenModel(module, slots=slots, max_context=max_context)
    return SlotModel(module, slots=slots, max_context=max_context, prefix_bytes=prefix_bytes)
