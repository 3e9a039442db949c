"""Weights and tokenizer on disk while training runs."""

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from deploy.models.model import LanguageModel, Shape
from deploy.models.tokenizer import TextCodec


def load_codec(folder: Path) -> TextCodec:
    """The tokenizer of a training or store folder."""
    return TextCodec.from_file(folder / "tokenizer.json")


def save_weights(values: list[Tensor], model: nn.Module, path: Path) -> None:
    """Writes float32 values under the model's names; replaces the file in one move."""
    names = [name for name, _ in model.named_parameters()]
    draft = path.with_suffix(".draft")
    save_file(
        {n: v.detach().float().contiguous() for n, v in zip(names, values, strict=True)}, draft
    )
    draft.replace(path)


def load_model(path: Path, shape: Shape, dtype: torch.dtype = torch.float32) -> LanguageModel:
    """A model with the weights of a file, whatever their dtype there."""
    model = LanguageModel(shape)
    model.load_state_dict(
        {k: v.float() for k, v in load_file(path).items() if k != "lm_head.weight"}
    )
    return model.to(dtype)
