"""A checkpoint's folder as a model in memory: safetensors and JSON, never code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, PretrainedConfig, PreTrainedModel
from transformers.core_model_loading import revert_weight_conversion
from transformers.utils import logging as transformers_logging

from services.generation.architectures import check_runnable, class_of, published_as
from services.generation.card import CheckpointError, ModelCard, read_card
from services.generation.codec import TextCodec
from services.generation.published import renamed
from services.generation.quantized import INT8, int8_config
from services.generation.stored_tensors import stored_tensors
from services.generation.vocabulary import Vocabulary, token_bytes

CONFIG = "config.json"
_SHOWN = 5

Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Everything in a folder but the weights, read and cross-checked."""

    folder: Path
    card: ModelCard
    codec: TextCodec
    config: PretrainedConfig
    tensors: Mapping[str, str] = field(default_factory=dict)
    """How stored names become those of the config's model; see Published."""

    @property
    def vocabulary(self) -> Vocabulary:
        """The tokens as the engine knows them."""
        return vocabulary_of(self.card, self.codec)


def vocabulary_of(card: ModelCard, codec: TextCodec) -> Vocabulary:
    """The tokens of a tokenizer with the meanings that a card gives some of them."""
    marks = card.thinking
    return Vocabulary(
        pieces=token_bytes(codec.tokenizer),
        eos_id=codec.special(card.eos_token),
        mask_id=codec.special(card.mask_token) if card.mask_token else None,
        think_open_id=codec.special(marks.open) if marks else None,
        think_close_id=codec.special(marks.close) if marks else None,
    )


def read_checkpoint(folder: Path) -> Checkpoint:
    """Reads card, tokenizer and config. Raises CheckpointError naming file and field."""
    card = read_card(folder)
    codec = TextCodec.from_folder(folder, card.control_tokens)
    config, tensors = _read_config(folder / CONFIG, card, codec)
    largest = max(codec.tokenizer.get_vocab().values(), default=-1)
    words = config.get_text_config().vocab_size
    if largest >= words:
        raise CheckpointError(
            f"{folder / CONFIG}: vocab_size {words} does not hold token {largest}"
        )
    return Checkpoint(folder, card, codec, config, tensors)


def load_model(checkpoint: Checkpoint, device: str, dtype: str, ways: int = 1) -> PreTrainedModel:
    """The model with its weights, in eval mode. Blocks while it reads.

    ``dtype`` is a type of torch, ``auto`` for the stored one, or ``int8``; of more than one
    ``ways`` it is this process's part.

    Names and shapes are compared before anything is allocated. Raises
    CheckpointError with the first differences.
    """
    tensors = stored_tensors(checkpoint.folder)
    _compare(checkpoint, {name: tensor.shape for name, tensor in tensors.items()})
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    loaded: Any = class_of(checkpoint.config).from_pretrained(
        checkpoint.folder,
        config=checkpoint.config,
        dtype="auto" if dtype == INT8 else dtype,
        quantization_config=int8_config(checkpoint.card) if dtype == INT8 else None,
        tp_plan="auto" if ways > 1 else None,
        use_safetensors=True,
        local_files_only=True,
        trust_remote_code=False,
        key_mapping=dict(checkpoint.tensors) or None,
        output_loading_info=True,
    )
    model, report = loaded
    astray = sorted(report["missing_keys"] | report["unexpected_keys"])
    if astray:
        raise CheckpointError(f"{checkpoint.folder}: {', '.join(astray[:_SHOWN])}: not loaded")
    placed: PreTrainedModel = model.to(torch.device(device)).eval()
    return placed


def _read_config(
    path: Path, card: ModelCard, codec: TextCodec
) -> tuple[PretrainedConfig, Mapping[str, str]]:
    """The config of a transformers model, and how stored tensors are renamed to it."""
    try:
        described = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(described, dict) or "model_type" not in described:
            raise CheckpointError("model_type is missing")
        published = published_as(described["model_type"])
        if published is None:
            config: PretrainedConfig = AutoConfig.from_pretrained(
                path.parent, local_files_only=True, trust_remote_code=False
            )
        else:
            mask_id = codec.special(card.mask_token) if card.mask_token else None
            published.check(described, card, mask_id)
            config = published.config(described)
        check_runnable(config, card)
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror or error}") from None
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from None
    except Exception as error:  # transformers raises whatever its model classes raise
        raise CheckpointError(f"{path}: {type(error).__name__}: {error}") from None
    return config, published.tensors if published else {}


def _compare(checkpoint: Checkpoint, stored: Shapes) -> None:
    with torch.device("meta"):
        model = class_of(checkpoint.config).from_config(checkpoint.config, trust_remote_code=False)
    if not model._supports_attention_backend:
        raise CheckpointError(
            f"{checkpoint.folder}: {type(model).__name__} has no attention interface"
        )
    weights = revert_weight_conversion(model, model.state_dict())
    wanted: Shapes = {name: tuple(value.shape) for name, value in weights.items()}
    stored = {renamed(name, checkpoint.tensors): shape for name, shape in stored.items()}
    tied = frozenset(getattr(model, "all_tied_weights_keys", None) or ())
    faults = shape_faults(wanted, stored, tied)
    if faults:
        more = f" and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
        raise CheckpointError(f"{checkpoint.folder}: {'; '.join(faults[:_SHOWN])}{more}")


def shape_faults(wanted: Shapes, stored: Shapes, tied: frozenset[str]) -> list[str]:
    """How stored tensors differ from those that the config asks for, one line each.

    ``tied`` tensors are another's and need not be stored.
    """
    faults = [f"{name}: missing" for name in wanted if name not in stored and name not in tied]
    faults += [f"{name}: not in the config's model" for name in stored if name not in wanted]
    faults += [
        f"{name}: shape {list(stored[name])}, the config says {list(wanted[name])}"
        for name in wanted
        if name in stored and stored[name] != wanted[name]
    ]
    return faults
