"""A tiny diffusion_gemma with random weights, as its authors would have saved it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from transformers import (
    DiffusionGemmaConfig,
    DiffusionGemmaForBlockDiffusion,
    DiffusionGemmaGenerationConfig,
    Gemma4VisionConfig,
)
from transformers.models.diffusion_gemma.generation_diffusion_gemma import (
    EntropyBoundSamplerConfig,
)

from services.generation.types import Paradigm
from tests.checkpoints import BLOCK, CONTEXT, SPECIALS, VOCABULARY_SIZE, card_of, tiny_tokenizer

PAD, EOS = (VOCABULARY_SIZE - 16 + SPECIALS.index(token) for token in ("<|pad|>", "<|eos|>"))
LAYERS, EXPERTS = 2, 4
MAX_STEPS = 6

_TEXT: dict[str, Any] = {
    "vocab_size": VOCABULARY_SIZE,
    "hidden_size": 32,
    "intermediate_size": 48,
    "moe_intermediate_size": 24,
    "num_hidden_layers": LAYERS,
    "layer_types": ["sliding_attention", "full_attention"],
    "sliding_window": 32,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "global_head_dim": 16,
    "num_experts": EXPERTS,
    "top_k_experts": 2,
    "max_position_embeddings": CONTEXT,
    "initializer_range": 0.3,
    "pad_token_id": PAD,
    "eos_token_id": EOS,
    "bos_token_id": None,
}
_GENERATION: dict[str, Any] = {
    "max_new_tokens": 256,
    "max_denoising_steps": 48,
    "sampler_config": EntropyBoundSamplerConfig(entropy_bound=0.1),
    "t_min": 0.4,
    "t_max": 0.8,
    "stability_threshold": 1,
    "confidence_threshold": 0.005,
    "eos_token_id": [EOS],
    "pad_token_id": PAD,
}
_VISION: dict[str, Any] = {
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 1,
    "num_key_value_heads": 1,
    "head_dim": 16,
    "patch_size": 4,
    "position_embedding_size": 16,
}


def gemma_config(**changes: Any) -> DiffusionGemmaConfig:
    """The config; ``changes`` are fields of it."""
    fields: dict[str, Any] = {
        "text_config": _TEXT,
        "vision_config": Gemma4VisionConfig(**_VISION),
        "canvas_length": BLOCK,
        "image_token_id": VOCABULARY_SIZE - 1,
        "boi_token_id": VOCABULARY_SIZE - 2,
        "eoi_token_id": VOCABULARY_SIZE - 3,
    }
    return DiffusionGemmaConfig(**(fields | changes))


def gemma_card(**changes: Any) -> dict[str, Any]:
    """Its braid.json; ``changes`` replace fields."""
    card = card_of(Paradigm.DIFFUSION) | {
        "family": "diffusion_gemma",
        "mask_token": None,
        "defaults": {"strategy": "entropy_bound", "entropy_bound": 0.5, "max_steps": MAX_STEPS},
        "thinking": None,
        "capabilities": ["seed"],
    }
    for form in ("infill", "edit"):
        del card["prompt"][form]
    return card | changes


def write_gemma(folder: Path, generation: dict[str, Any] | None = None, **changes: Any) -> Path:
    """Writes a checkpoint; ``generation`` and ``changes`` replace fields of its config and card."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    model = DiffusionGemmaForBlockDiffusion(gemma_config())
    kind: Any = DiffusionGemmaGenerationConfig
    model.generation_config = kind(**(_GENERATION | (generation or {})))
    model.save_pretrained(folder)
    tiny_tokenizer().save(str(folder / "tokenizer.json"))
    (folder / "braid.json").write_text(json.dumps(gemma_card(**changes)), encoding="utf-8")
    return folder
