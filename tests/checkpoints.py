"""Tiny checkpoints with random weights: everything a worker reads, in a second or less."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import Qwen3Config, Qwen3ForCausalLM

from braid.config.v1.config_pb2 import ModelFile, ModelVersion
from services.generation.types import Paradigm

torch.set_num_threads(1)

SPECIALS = (
    "<|pad|>",
    "<|eos|>",
    "<|mask|>",
    "<|user|>",
    "<|assistant|>",
    "<|system|>",
    "<|end|>",
    "<|fim_prefix|>",
    "<|fim_suffix|>",
    "<|fim_middle|>",
    "<think>",
    "</think>",
)
CONTEXT = 256
BLOCK = 8
VOCABULARY_SIZE = 272

CARD: dict[str, Any] = {
    "parameters_total": 20_000,
    "parameters_active": 20_000,
    "max_context": CONTEXT,
    "eos_token": "<|eos|>",
    "pad_token": "<|pad|>",
    "mask_token": "<|mask|>",
    "prompt": {
        "plain": "<|user|>{prompt}<|assistant|>",
        "turns": {
            "system": "<|system|>{content}<|end|>",
            "user": "<|user|>{content}",
            "assistant": "<|assistant|>{content}<|end|>",
        },
        "open": "<|assistant|>",
        "infill": "<|fim_prefix|>{prefix}<|fim_suffix|>{suffix}<|fim_middle|>",
        "edit": "<|user|>{instruction}\n{text}<|assistant|>",
    },
    "thinking": {"open": "<think>", "close": "</think>"},
    "capabilities": [
        "infill",
        "edit",
        "template",
        "json_schema",
        "regex",
        "choice",
        "thinking",
        "seed",
    ],
    "warmup": ["warm", "up"],
    "tasks": ["TASK_TEXT_GENERATION"],
}
DIFFUSION_CARD = CARD | {
    "family": "masked_block_diffusion",
    "block_length": BLOCK,
    "defaults": {"confidence_threshold": 0.5, "edit_threshold": 0.9, "max_steps": BLOCK},
}
AR_CARD = CARD | {"family": "autoregressive", "defaults": {"strategy": "greedy"}}


def card_of(paradigm: Paradigm) -> dict[str, Any]:
    """The braid.json of a tiny model; a copy."""
    card = DIFFUSION_CARD if paradigm is Paradigm.DIFFUSION else AR_CARD
    copy: dict[str, Any] = json.loads(json.dumps(card))
    return copy


def tiny_tokenizer() -> Tokenizer:
    """One token a byte, and the special tokens."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {character: index for index, character in enumerate(alphabet)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(text, normalized=False) for text in SPECIALS])
    return tokenizer


def write_checkpoint(folder: Path, paradigm: Paradigm, **card_changes: Any) -> Path:
    """Writes a checkpoint; ``card_changes`` replace fields of its braid.json."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=VOCABULARY_SIZE,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        initializer_range=0.3,
    )
    Qwen3ForCausalLM(config).save_pretrained(folder)
    tiny_tokenizer().save(str(folder / "tokenizer.json"))
    card = card_of(paradigm) | card_changes
    (folder / "braid.json").write_text(json.dumps(card), encoding="utf-8")
    return folder


def record_of(folder: Path, model: str = "tiny", version: str = "v1") -> ModelVersion:
    """The record that a config center would write for ``folder``."""
    return ModelVersion(
        model=model,
        version=version,
        uri=folder.resolve().as_uri(),
        files=[
            ModelFile(
                path=path.name,
                size_bytes=path.stat().st_size,
                sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
            )
            for path in sorted(folder.iterdir())
        ],
    )


@pytest.fixture(scope="session")
def diffusion_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny diffusion model; tests only read it."""
    folder = tmp_path_factory.mktemp("checkpoint") / "diffusion"
    return write_checkpoint(folder, Paradigm.DIFFUSION)


@pytest.fixture(scope="session")
def ar_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny autoregressive model; tests only read it."""
    folder = tmp_path_factory.mktemp("checkpoint") / "ar"
    return write_checkpoint(folder, Paradigm.AUTOREGRESSIVE)
