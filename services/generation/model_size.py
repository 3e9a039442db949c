"""How big a model is, from its config and its files' headers: known before it is loaded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from transformers import PreTrainedConfig

from services.generation.card import ModelCard
from services.generation.checkpoint import Checkpoint
from services.generation.published import renamed
from services.generation.quantized import INT8, int8_bytes, is_linear
from services.generation.slots import CacheShape
from services.generation.stored_tensors import StoredTensor

_EXPERT = re.compile(r"\.experts\.")
"""In the names of weights that not every token passes."""
_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")
_CHOSEN = ("num_experts_per_tok", "top_k_experts")


@dataclass(frozen=True, slots=True)
class ModelSize:
    """A model's figures; bytes are those it has in memory."""

    parameters_total: int
    parameters_active: int
    """Parameters that one token passes: of a mixture, those of the experts it is sent to."""
    weights_bytes: int
    cache: CacheShape | None
    """None where a sequence's keys and values are its own affair."""
    item_bytes: int
    hidden: int
    inner: int
    heads: int
    vocabulary: int
    wanted_rows: int
    """Rows of a sequence whose logits a step may want."""
    sees_right: bool

    @property
    def flops_per_token(self) -> int:
        """Of a forward: a multiplication and an addition for each active parameter."""
        return 2 * self.parameters_active

    def row_bytes(self) -> int:
        """Most that one row of a forward holds at once, in one layer."""
        return self.item_bytes * (8 * self.hidden + 3 * self.inner)


def size_of(
    checkpoint: Checkpoint, tensors: Mapping[str, StoredTensor], dtype: str, ways: int = 1
) -> ModelSize:
    """The size of a checkpoint that is loaded as ``dtype`` (auto: as stored).

    Of several ``ways`` the bytes are one process's, at most.
    """
    config, card = checkpoint.config.get_text_config(), checkpoint.card
    kind = memory_dtype(checkpoint.config, tensors, dtype)
    total = sum(tensor.count for tensor in tensors.values())
    names = {renamed(name, checkpoint.tensors): tensor for name, tensor in tensors.items()}
    weights = [
        _bytes(name, tensor, kind, dtype == INT8) // (ways if is_linear(name, tensor) else 1)
        for name, tensor in names.items()
    ]
    return ModelSize(
        parameters_total=total,
        parameters_active=total - _idle(config, tensors),
        weights_bytes=sum(weights),
        cache=None if card.self_driven else _cache(config, kind, ways),
        item_bytes=kind.itemsize,
        hidden=config.hidden_size,
        inner=_inner(config),
        heads=config.num_attention_heads,
        vocabulary=config.vocab_size,
        wanted_rows=_wanted_rows(card),
        sees_right=card.sees_right,
    )


def memory_dtype(
    config: PreTrainedConfig, tensors: Mapping[str, StoredTensor], dtype: str
) -> torch.dtype:
    """What transformers makes of ``dtype``: auto is the config's, or the first tensor's."""
    if dtype not in ("auto", INT8):
        return getattr(torch, dtype)  # type: ignore[no-any-return]
    if isinstance(config.dtype, torch.dtype):
        return config.dtype
    first = next((tensor for tensor in tensors.values() if tensor.is_float), None)
    names = {"F64": torch.float64, "F16": torch.float16, "BF16": torch.bfloat16}
    return names.get(first.dtype, torch.float32) if first else torch.float32


def _bytes(name: str, tensor: StoredTensor, dtype: torch.dtype, quantized: bool) -> int:
    small = int8_bytes(name, tensor) if quantized else None
    if small is not None:
        return small
    return tensor.count * (dtype.itemsize if tensor.is_float else tensor.item_bytes)


def _idle(config: PreTrainedConfig, tensors: Mapping[str, StoredTensor]) -> int:
    """Parameters of experts that a token is not sent to."""
    experts, chosen = _first(config, _EXPERTS), _first(config, _CHOSEN)
    if not experts or not chosen:
        return 0
    held = sum(tensor.count for name, tensor in tensors.items() if _EXPERT.search(name))
    return held * (experts - min(chosen, experts)) // experts


def _inner(config: PreTrainedConfig) -> int:
    """Width of what a token's feed-forward holds: of a mixture, of all chosen experts."""
    width = getattr(config, "moe_intermediate_size", None)
    chosen = _first(config, _CHOSEN)
    if width and chosen:
        return int(width) * chosen
    return int(config.intermediate_size)


def _cache(config: PreTrainedConfig, dtype: torch.dtype, ways: int) -> CacheShape:
    return CacheShape(
        layers=config.num_hidden_layers,
        kv_heads=config.num_key_value_heads // ways,
        head_dim=getattr(config, "head_dim", None)
        or config.hidden_size // config.num_attention_heads,
        dtype=dtype,
        device=torch.device("meta"),
    )


def _wanted_rows(card: ModelCard) -> int:
    return max(card.trained_block_lengths)


def _first(config: PreTrainedConfig, names: tuple[str, ...]) -> int:
    """The first of these fields that the config has; 0 where it has none."""
    return next((int(value) for name in names if (value := getattr(config, name, None))), 0)
