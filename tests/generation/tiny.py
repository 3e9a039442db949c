"""Tiny random decoders, and jobs for them."""

from __future__ import annotations

import time
from typing import Any

import torch
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
)

from services.generation.types import DenoisingPlan, Job, Priority
from services.generation.vocabulary import Vocabulary

VOCABULARY_SIZE = 96
EOS, MASK, THINK, UNTHINK = 0, 1, 2, 3
BLOCK = 8

torch.set_num_threads(1)

VOCABULARY = Vocabulary(
    pieces=(b"", b"", b"", b"", *(f"{token} ".encode() for token in range(4, VOCABULARY_SIZE))),
    eos_id=EOS,
    mask_id=MASK,
    think_open_id=THINK,
    think_close_id=UNTHINK,
)

MARKS = VOCABULARY.marks

_SIZE: dict[str, Any] = {
    "vocab_size": VOCABULARY_SIZE,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "bos_token_id": None,
    "eos_token_id": EOS,
    "pad_token_id": None,
    "tie_word_embeddings": False,
    "initializer_range": 0.3,
}


def decoder(architecture: str = "qwen3", **changes: Any) -> PreTrainedModel:
    """A random decoder that is sure of some tokens and unsure of others."""
    torch.manual_seed(0)
    size = _SIZE | changes
    model: PreTrainedModel
    match architecture:
        case "llama":
            model = LlamaForCausalLM(LlamaConfig(**size))
        case "qwen2":
            model = Qwen2ForCausalLM(Qwen2Config(**size))
        case "qwen3":
            model = Qwen3ForCausalLM(Qwen3Config(**size, head_dim=16))
        case "qwen3_moe":
            experts: dict[str, Any] = {
                "num_experts": 4,
                "num_experts_per_tok": 2,
                "moe_intermediate_size": 24,
            }
            model = Qwen3MoeForCausalLM(Qwen3MoeConfig(**size, **experts))
        case _:
            raise ValueError(architecture)
    model.lm_head.weight.data *= 3
    model.train(mode=False)
    return model


ARCHITECTURES = ("llama", "qwen2", "qwen3", "qwen3_moe")

PLAN = DenoisingPlan(
    max_steps=BLOCK,
    block_length=BLOCK,
    strategy="distance_threshold",
    confidence_threshold=0.5,
    factor=1.0,
    entropy_bound=0.1,
    distance_decay=0.9,
    edit_threshold=0.7,
)


def prompt(length: int, number: int = 0) -> tuple[int, ...]:
    """Tokens that mean nothing, none of them special."""
    return tuple(4 + (7 * number + 5 * place) % (VOCABULARY_SIZE - 4) for place in range(length))


def job(prompt_ids: tuple[int, ...] = prompt(11), max_new_tokens: int = 20, **changes: Any) -> Job:
    """A greedy job; ``changes`` are fields of Job."""
    fields: dict[str, Any] = {
        "request_id": "test",
        "temperature": 0.0,
        "top_p": 1.0,
        "top_k": 0,
        "seed": 7,
        "stop": (),
        "priority": Priority.NORMAL,
        "arrived": time.monotonic(),
        "deadline": None,
        "answer_by": None,
        "denoising": PLAN,
    }
    return Job(prompt_ids=prompt_ids, max_new_tokens=max_new_tokens, **(fields | changes))
