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


class SlotCache:
    """Keys and values of all slots, per layer one tensor [kv_heads, slots * length, head_dim].

    Slots lie one behind the other, so that a sequence's keys are a view and a
    whole batch is written with one call.
    """

    def __init__(self, shape: CacheShape, slots: int, max_context: int) -> None:
        self.length = slot_length(max_context)
        size = (2, shape.layers, shape.kv_heads, slots * self.length, shape.head_dim)
        self._tokens = torch.zeros(size, dtype=shape.dtype, device=shape.device)
        self._keys = self._tokens[0].unbind()
        self._values = self._tokens[1].unbind()

    def write(self, layer: int, places: Tensor, keys: Tensor, values: Tensor) -> None:
        """Puts keys and values [kv_heads, rows, head_dim] at ``places`` [rows]."""
        self._keys[layer].index_copy_(1, places, keys)
        self._values[layer].index_copy_(1, places, values)

    def read(self, layer: int, slots: tuple[int, ...], length: int) -> tuple[Tensor, Tensor]:
        """The first ``length`` keys and values of some slots, [slots, kv_heads, length, head_dim].

        Views where the slots lie one behind the other.
        """
        return (
            self._part(self._keys[layer], slots, length),
            self._part(self._values[layer], slots, length),
        )

    def get(self, slot: int, start: int, count: int) -> Tensor:
        """A copy of some tokens' keys and values, [2, layers, kv_heads, count, head_dim]."""
        place = slot * self.length + start
        return self._tokens[:, :, :, place : place + count].clone()

    def put(self, slot: int, start: int, tokens: Tensor) -> None:
        """Writes what ``get`` has given, to whichever slot."""
        place = slot * self.length + start
        self._tokens[:, :, :, place : place + tokens.shape[3]] = tokens

    def clear(self, slot: int) -> None:
        """Forgets what a slot held: padding reads over it, and NaN times nothing is NaN."""
        self._tokens[:, :, :, slot * self.length : (slot + 1) * self.length].zero_()

    def _part(self, tensor: Tensor, slots: tuple[int, ...], length: int) -> Tensor:
        first, count = slots[0], len(slots)
        whole = tensor.view(len(tensor), -1, self.length, tensor.shape[-1])
        if slots == tuple(range(first, first + count)):
            return whole[:, first : first + count, :length].transpose(0, 1)
        return whole[:, list(slots), :length].transpose(0, 1)
