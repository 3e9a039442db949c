"""Weights in 8 bits: linear layers through torchao, everything else as it is stored."""

from __future__ import annotations

import re
from typing import Any

from services.generation.card import CheckpointError, ModelCard
from services.generation.stored_tensors import StoredTensor

INT8 = "int8"
_SCALE_BYTES = 4
"""Of each row of a weight."""
_WHOLE = re.compile(r"embed_tokens|lm_head|\.experts\.|\.gate\.")
"""Names of matrices that stay as they are: no linear layers, or the one before the choice."""


def int8_config(card: ModelCard) -> Any:
    """What transformers is told to quantize with, tensor by tensor while it loads.

    Raises CheckpointError without torchao, and for a model that brings its own loop.
    """
    if card.self_driven:
        raise CheckpointError(f"dtype {INT8} is not for family {card.family}")
    try:
        from torchao.quantization import Int8WeightOnlyConfig
        from transformers import TorchAoConfig

        return TorchAoConfig(Int8WeightOnlyConfig())
    except ImportError as error:
        raise CheckpointError(f"dtype {INT8} needs torchao, the int8 extra: {error}") from None


def int8_bytes(name: str, tensor: StoredTensor) -> int | None:
    """What a tensor takes as 8 bits with a scale a row; None where it stays as it is."""
    if not is_linear(name, tensor):
        return None
    return tensor.count + tensor.shape[0] * _SCALE_BYTES


def is_linear(name: str, tensor: StoredTensor) -> bool:
    """Whether it is a linear layer's matrix inside the decoder."""
    return len(tensor.shape) == 2 and tensor.is_float and not _WHOLE.search(name)
