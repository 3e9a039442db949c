"""One model over several processes: rank 0 serves, the others compute their share with it.

Started by torchrun. Each process holds its part of every weight and of every key and
value, as transformers' tensor-parallel plan divides them; what rank 0's step loop does
with its slots is told to the others before each forward, and they do the same.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Many
from contextlib import suppress
from datetime import timedelta
from importlib.util import find_spec
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from services.chassis.process import StartFailure
from services.generation.card import CheckpointError
from services.generation.checkpoint import Checkpoint
from services.generation.model import Model, Prefixes
from services.generation.quantized import INT8
from services.generation.sequence import Head, Rows

_PATIENCE = timedelta(days=365)
"""How long the others wait for rank 0, which may have nothing to do."""
_FORWARD, _CLEAR, _RESTORE, _KEEP, _LEAVE = "forward", "clear", "restore", "keep", "leave"


def join(ways: int, device: str) -> int:
    """Meets the other processes; returns this one's rank. Raises StartFailure."""
    if find_spec("accelerate") is None:
        raise StartFailure("tensor_parallel needs accelerate, the tensor-parallel extra")
    try:
        dist.init_process_group("nccl" if device.startswith("cuda") else "gloo", timeout=_PATIENCE)
    except ValueError as error:
        raise StartFailure(f"tensor_parallel {ways} wants torchrun: {error}") from None
    if dist.get_world_size() != ways:
        raise StartFailure(f"torchrun started {dist.get_world_size()} processes, not {ways}")
    return dist.get_rank()


class LeadModel:
    """Rank 0's model: does as a model does, and has the others do it."""

    def __init__(self, own: Model) -> None:
        self._own = own
        self.slots = own.slots
        self.max_context = own.max_context
        self.expert_load = own.expert_load
        self.prefixes: Prefixes = _LeadPrefixes(own.prefixes)

    def forward(self, batch: Many[tuple[int, Rows]]) -> Tensor:
        """Runs (slot, rows) pairs everywhere; returns the wanted rows' logits."""
        _tell(_FORWARD, batch)
        return self._own.forward(batch)

    def clear(self, slot: int) -> None:
        """Forgets what a slot held, everywhere."""
        _tell(_CLEAR, slot)
        self._own.clear(slot)

    def leave(self) -> None:
        """Lets the others end; nothing may be computed any more."""
        with suppress(RuntimeError):  # they are gone already
            _tell(_LEAVE)


class _LeadPrefixes:
    def __init__(self, own: Prefixes) -> None:
        self._own = own

    def restore(self, slot: int, head: Head) -> int:
        """Every process keeps its part of the same heads."""
        _tell(_RESTORE, slot, head)
        return self._own.restore(slot, head)

    def keep(self, slot: int, head: Head) -> None:
        """See restore."""
        _tell(_KEEP, slot, head)
        self._own.keep(slot, head)


def follow(model: Model) -> None:
    """Does as rank 0 does, until it leaves. Blocks; raises RuntimeError where it is lost."""
    actions: dict[str, Callable[..., object]] = {
        _FORWARD: model.forward,
        _CLEAR: model.clear,
        _RESTORE: model.prefixes.restore,
        _KEEP: model.prefixes.keep,
    }
    while (told := _hear())[0] != _LEAVE:
        actions[told[0]](*told[1:])


def _tell(*told: Any) -> None:
    dist.broadcast_object_list([told], src=0)


def _hear() -> tuple[Any, ...]:
    told: list[Any] = [None]
    dist.broadcast_object_list(told, src=0)
    heard: tuple[Any, ...] = told[0]
    return heard


def check_divides(checkpoint: Checkpoint, dtype: str, ways: int) -> None:
    """Raises CheckpointError for a model that cannot be divided into so many parts."""
    if ways == 1:
        return
    config, card = checkpoint.config.get_text_config(), checkpoint.card
    heads = (config.num_attention_heads, config.num_key_value_heads)
    if card.self_driven or dtype == INT8:
        raise CheckpointError(f"tensor_parallel is not for dtype {INT8} or family {card.family}")
    if any(count % ways for count in heads):
        raise CheckpointError(f"tensor_parallel {ways} does not divide {heads} heads")


def device_of(device: str, rank: int) -> str:
    """Each process has a GPU of its own."""
    return f"cuda:{rank % max(torch.cuda.device_count(), 1)}" if device == "cuda" else device
