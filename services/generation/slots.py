"""Preallocated keys and values: one slot per running sequence."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

GRAIN = 64
"""Slots are a multiple of this long: the last block of an answer fits whole if its
length divides this."""


@dataclass(frozen=True, slots=True)
class CacheShape:
    """Size of one token's keys and values."""

    layers: int
    kv_heads: int
    head_dim: int
    dtype: torch.dtype
    device: torch.device

    def bytes_per_slot(self, max_context: int) -> int:
        """Memory of one slot of ``max_context`` tokens."""
        per_token = 2 * self.layers * self.kv_heads * self.head_dim * self.dtype.itemsize
        return per_token * slot_length(max_context)


def slot_length(max_context: int) -> int:
    """Tokens a slot holds: the context, rounded up."""
    return -(-max_context // GRAIN) * GRAIN


def slots_within(budget_bytes: int, shape: CacheShape, max_context: int, wanted: int) -> int:
    """How many slots fit the budget, at most ``wanted``; raises ValueError if none does."""
    slots = min(wanted, budget_bytes // shape.bytes_per_slot(max_context))
    if slots < 1:
        need = shape.bytes_per_slot(max_context)
        raise ValueError(
            f"a KV slot of {max_context} tokens needs {need} bytes, {budget_bytes} left"
        )
    return slots


class SlotCache:
    """Keys and values of all slots, per layer one tensor [kv_heads, slots * length, head_dim].

    Slots lie one behind the other, so that a sequence's keys are a view and a
    whole batch is written with one call.
    """

    def __init__(self, shape: CacheShape, slots: int, max_context: int) -> None:
        self.length = slot_length(max_context)
        size = (shape.kv_heads, slots * self.length, shape.head_dim)
        self._keys = [self._allocate(size, shape) for _ in range(shape.layers)]
        self._values = [self._allocate(size, shape) for _ in range(shape.layers)]

    def write(self, layer: int, places: Tensor, keys: Tensor, values: Tensor) -> None:
        """Puts keys and values [kv_heads, rows, head_dim] at ``places`` [rows]."""
        self._keys[layer].index_copy_(1, places, keys)
        self._values[layer].index_copy_(1, places, values)

    def read(self, layer: int, slot: int, length: int) -> tuple[Tensor, Tensor]:
        """The first ``length`` keys and values of a slot, as views."""
        start = slot * self.length
        return (
            self._keys[layer][:, start : start + length],
            self._values[layer][:, start : start + length],
        )

    @staticmethod
    def _allocate(size: tuple[int, int, int], shape: CacheShape) -> Tensor:
        return torch.zeros(size, dtype=shape.dtype, device=shape.device)
