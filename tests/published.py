"""Tiny checkpoints in the layouts that models are published in, and what they compute.

Configs have the fields of the published ones, but for sizes and token ids; the
forward is written from the published equations and shares nothing with the one
that is served.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.nn.functional import linear, silu

from services.generation.types import Paradigm
from tests.checkpoints import BLOCK, CONTEXT, SPECIALS, VOCABULARY_SIZE, card_of, tiny_tokenizer

HIDDEN, INNER, LAYERS, HEADS, KV_HEADS, EXPERTS, EXPERT_INNER = 32, 48, 2, 4, 2, 4, 24
EOS, MASK = (VOCABULARY_SIZE - 16 + SPECIALS.index(token) for token in ("<|eos|>", "<|mask|>"))

_QWEN: dict[str, Any] = {
    "attention_dropout": 0.0,
    "bos_token_id": EOS,
    "eos_token_id": EOS,
    "hidden_act": "silu",
    "hidden_size": HIDDEN,
    "initializer_range": 0.02,
    "intermediate_size": INNER,
    "max_position_embeddings": CONTEXT,
    "max_window_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_hidden_layers": LAYERS,
    "num_key_value_heads": KV_HEADS,
    "rms_norm_eps": 1e-06,
    "rope_scaling": None,
    "rope_theta": 1000000.0,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "use_cache": True,
    "use_sliding_window": False,
    "vocab_size": VOCABULARY_SIZE,
}
_SDAR = _QWEN | {
    "attention_bias": False,
    "block_size": BLOCK,
    "debug": False,
    "fuse_cross_entropy": True,
    "head_dim": 16,
    "mask_token_id": MASK,
}
CONFIGS: dict[str, dict[str, Any]] = {
    "sdar": _SDAR
    | {
        "architectures": ["SDARForCausalLM"],
        "auto_map": {"AutoModelForCausalLM": "modeling_sdar.SDARForCausalLM"},
        "model_type": "sdar",
    },
    "sdar_moe": _SDAR
    | {
        "architectures": ["SDARMoeForCausalLM"],
        "auto_map": {"AutoModelForCausalLM": "modeling_sdar_moe.SDARMoeForCausalLM"},
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "model_type": "sdar_moe",
        "moe_intermediate_size": EXPERT_INNER,
        "norm_topk_prob": True,
        "num_experts": EXPERTS,
        "num_experts_per_tok": 2,
        "output_router_logits": False,
        "router_aux_loss_coef": 0.001,
    },
    "Fast_dLLM_Qwen": _QWEN
    | {
        "architectures": ["Fast_dLLM_QwenForCausalLM"],
        "auto_map": {"AutoModelForCausalLM": "modeling.Fast_dLLM_QwenForCausalLM"},
        "bd_size": BLOCK,
        "layer_types": ["full_attention"] * LAYERS,
        "model_type": "Fast_dLLM_Qwen",
    },
    "Dream": _QWEN
    | {
        "architectures": ["DreamModel"],
        "auto_map": {"AutoModel": "modeling_dream.DreamModel"},
        "mask_token_id": MASK,
        "model_type": "Dream",
        "pad_token_id": EOS,
        "use_mrope": False,
    },
    "llada": {
        "activation_type": "silu",
        "alibi": False,
        "alibi_bias_max": 8.0,
        "architectures": ["LLaDAModelLM"],
        "attention_dropout": 0.0,
        "attention_layer_norm": False,
        "attention_layer_norm_with_affine": True,
        "auto_map": {"AutoModelForCausalLM": "modeling_llada.LLaDAModelLM"},
        "bias_for_layer_norm": False,
        "block_group_size": 1,
        "block_type": "llama",
        "d_model": HIDDEN,
        "embedding_dropout": 0.0,
        "embedding_size": VOCABULARY_SIZE,
        "eos_token_id": EOS,
        "flash_attention": False,
        "include_bias": False,
        "include_qkv_bias": False,
        "init_cutoff_factor": None,
        "init_device": "meta",
        "init_fn": "mitchell",
        "init_std": 0.02,
        "input_emb_norm": False,
        "layer_norm_type": "rms",
        "layer_norm_with_affine": True,
        "mask_token_id": MASK,
        "max_sequence_length": CONTEXT,
        "mlp_hidden_size": INNER,
        "mlp_ratio": 4,
        "model_type": "llada",
        "multi_query_attention": None,
        "n_heads": HEADS,
        "n_kv_heads": KV_HEADS,
        "n_layers": LAYERS,
        "pad_token_id": EOS,
        "precision": "amp_bf16",
        "residual_dropout": 0.0,
        "rms_norm_eps": 1e-05,
        "rope": True,
        "rope_full_precision": True,
        "rope_theta": 500000.0,
        "scale_logits": False,
        "transformers_version": "4.46.3",
        "use_cache": False,
        "vocab_size": VOCABULARY_SIZE,
        "weight_tying": False,
    },
}


@dataclass(frozen=True)
class Names:
    """What a layout calls each part."""

    top: Mapping[str, str]
    layer: str
    parts: Mapping[str, str]
    biased: tuple[str, ...] = ()
    normed_heads: bool = False
    experts: bool = False
    head_dim: int = HIDDEN // HEADS


_QWEN_NAMES: dict[str, Any] = {
    "top": {"embed": "model.embed_tokens", "norm": "model.norm", "head": "lm_head"},
    "layer": "model.layers.{}.",
    "parts": {
        "query": "self_attn.q_proj",
        "key": "self_attn.k_proj",
        "value": "self_attn.v_proj",
        "out": "self_attn.o_proj",
        "query_norm": "self_attn.q_norm",
        "key_norm": "self_attn.k_norm",
        "attention_norm": "input_layernorm",
        "mlp_norm": "post_attention_layernorm",
        "router": "mlp.gate",
        "gate": "mlp.gate_proj",
        "up": "mlp.up_proj",
        "down": "mlp.down_proj",
    },
}
_BIASED = ("query", "key", "value")
NAMES: dict[str, Names] = {
    "sdar": Names(**_QWEN_NAMES, normed_heads=True, head_dim=16),
    "sdar_moe": Names(**_QWEN_NAMES, normed_heads=True, head_dim=16, experts=True),
    "Fast_dLLM_Qwen": Names(**_QWEN_NAMES, biased=_BIASED),
    "Dream": Names(**_QWEN_NAMES, biased=_BIASED),
    "llada": Names(
        top={
            "embed": "model.transformer.wte",
            "norm": "model.transformer.ln_f",
            "head": "model.transformer.ff_out",
        },
        layer="model.transformer.blocks.{}.",
        parts={
            "query": "q_proj",
            "key": "k_proj",
            "value": "v_proj",
            "out": "attn_out",
            "attention_norm": "attn_norm",
            "mlp_norm": "ff_norm",
            "gate": "ff_proj",
            "up": "up_proj",
            "down": "ff_out",
        },
    ),
}
LAYOUTS = tuple(CONFIGS)
CARDS: dict[str, dict[str, Any]] = {
    "sdar": {"family": "masked_block_diffusion", "logit_shift": False},
    "sdar_moe": {"family": "masked_block_diffusion", "logit_shift": False},
    "Fast_dLLM_Qwen": {"family": "masked_block_diffusion", "logit_shift": True},
    "Dream": {"family": "masked_diffusion", "logit_shift": True},
    "llada": {"family": "masked_diffusion", "logit_shift": False},
}


def write_published(folder: Path, layout: str) -> Path:
    """A checkpoint with random weights, as its authors would have published it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIGS[layout]))
    card = card_of(Paradigm.DIFFUSION) | CARDS[layout]
    if card["family"] == "masked_diffusion":
        del card["prompt"]["infill"]
    (folder / "braid.json").write_text(json.dumps(card))
    tiny_tokenizer().save(str(folder / "tokenizer.json"))
    save_file(random_weights(NAMES[layout]), folder / "model.safetensors", {"format": "pt"})
    return folder


def random_weights(names: Names) -> dict[str, Tensor]:
    """Every tensor of a layout, none of them like another."""
    random = torch.Generator().manual_seed(1)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(shape, generator=random) * 0.3 + (len(shape) == 1)

    weights = {
        f"{names.top['embed']}.weight": drawn(VOCABULARY_SIZE, HIDDEN),
        f"{names.top['norm']}.weight": drawn(HIDDEN),
        f"{names.top['head']}.weight": drawn(VOCABULARY_SIZE, HIDDEN),
    }
    for layer in range(LAYERS):
        for part, shape in _shapes(names).items():
            name = names.layer.format(layer) + part
            weights[name] = drawn(*shape)
    return weights


def _shapes(names: Names) -> dict[str, tuple[int, ...]]:
    """Tensors of one layer."""
    parts, query, key = names.parts, HEADS * names.head_dim, KV_HEADS * names.head_dim
    outputs = {"query": query, "key": key, "value": key}
    shapes: dict[str, tuple[int, ...]] = {
        f"{parts[part]}.weight": (size, HIDDEN) for part, size in outputs.items()
    }
    shapes |= {f"{parts[part]}.bias": (outputs[part],) for part in names.biased}
    shapes |= {f"{parts['out']}.weight": (HIDDEN, query)}
    norms = {"attention_norm": HIDDEN, "mlp_norm": HIDDEN}
    if names.normed_heads:
        norms |= {"query_norm": names.head_dim, "key_norm": names.head_dim}
    shapes |= {f"{parts[part]}.weight": (size,) for part, size in norms.items()}
    if not names.experts:
        return shapes | _mlp(names, "", INNER)
    shapes[f"{parts['router']}.weight"] = (EXPERTS, HIDDEN)
    for expert in range(EXPERTS):
        shapes |= _mlp(names, f"experts.{expert}.", EXPERT_INNER)
    return shapes


def _mlp(names: Names, prefix: str, inner: int) -> dict[str, tuple[int, ...]]:
    sizes = {"gate": (inner, HIDDEN), "up": (inner, HIDDEN), "down": (HIDDEN, inner)}
    return {f"{expert_name(names.parts[part], prefix)}.weight": s for part, s in sizes.items()}


def expert_name(part: str, prefix: str) -> str:
    """``mlp.gate_proj`` as ``mlp.experts.0.gate_proj``."""
    head, dot, tail = part.rpartition(".")
    return f"{head}{dot}{prefix}{tail}"


@dataclass(frozen=True)
class Reference:
    """The published forward over stored weights, without a cache."""

    layout: str
    weights: Mapping[str, Tensor] = field(repr=False)

    def logits(self, tokens: list[int], seen: Tensor) -> Tensor:
        """Logits of all positions; ``seen[i, j]`` says whether i attends to j."""
        names = NAMES[self.layout]
        hidden = self.weights[f"{names.top['embed']}.weight"][tokens]
        for layer in range(LAYERS):
            normed = self.norm(hidden, "attention_norm", layer)
            hidden = hidden + self.attend(normed, seen, layer)
            normed = self.norm(hidden, "mlp_norm", layer)
            hidden = hidden + (self.mix if names.experts else self.mlp)(normed, layer)
        normed = self.scaled(hidden, self.weights[f"{names.top['norm']}.weight"])
        return linear(normed, self.weights[f"{names.top['head']}.weight"])

    def attend(self, hidden: Tensor, seen: Tensor, layer: int) -> Tensor:
        """Attention with its output product."""
        names, count = NAMES[self.layout], len(hidden)
        query, key, value = (
            self.project(hidden, part, layer).view(count, -1, names.head_dim).transpose(0, 1)
            for part in _BIASED
        )
        if names.normed_heads:
            query = self.norm(query, "query_norm", layer)
            key = self.norm(key, "key_norm", layer)
        query, key = self.turned(query), self.turned(key)
        key, value = (t.repeat_interleave(HEADS // KV_HEADS, dim=0) for t in (key, value))
        scores = (query @ key.transpose(1, 2)) / names.head_dim**0.5
        weights = scores.masked_fill(~seen, -torch.inf).softmax(-1)
        return self.project((weights @ value).transpose(0, 1).reshape(count, -1), "out", layer)

    def turned(self, heads: Tensor) -> Tensor:
        """Rotary positions: the halves of a head are a complex number's two parts."""
        half = heads.shape[-1] // 2
        rates = CONFIGS[self.layout]["rope_theta"] ** -(torch.arange(half) / half)
        angles = torch.arange(heads.shape[1])[:, None] * rates
        whole = torch.complex(heads[..., :half], heads[..., half:])
        whole = whole * torch.polar(torch.ones_like(angles), angles)
        return torch.cat([whole.real, whole.imag], dim=-1)

    def mix(self, hidden: Tensor, layer: int) -> Tensor:
        """Each token through its two likeliest experts."""
        shares = self.project(hidden, "router", layer).softmax(-1)
        top = shares.topk(CONFIGS[self.layout]["num_experts_per_tok"], dim=-1)
        kept = torch.zeros_like(shares).scatter(-1, top.indices, top.values)
        kept = kept / kept.sum(-1, keepdim=True)
        outputs = [self.mlp(hidden, layer, f"experts.{expert}.") for expert in range(EXPERTS)]
        return sum((kept[:, [e]] * output for e, output in enumerate(outputs)), torch.zeros(()))

    def mlp(self, hidden: Tensor, layer: int, prefix: str = "") -> Tensor:
        """One gated layer, an expert's where there is a prefix."""
        gate = silu(self.project(hidden, "gate", layer, prefix))
        return self.project(gate * self.project(hidden, "up", layer, prefix), "down", layer, prefix)

    def norm(self, values: Tensor, part: str, layer: int) -> Tensor:
        """A norm of one layer."""
        names = NAMES[self.layout]
        name = f"{names.layer.format(layer)}{names.parts[part]}.weight"
        return self.scaled(values, self.weights[name])

    def scaled(self, values: Tensor, weight: Tensor) -> Tensor:
        """Root mean square norm."""
        mean = values.square().mean(-1, keepdim=True)
        eps: float = CONFIGS[self.layout]["rms_norm_eps"]
        return values / (mean + eps).sqrt() * weight

    def project(self, hidden: Tensor, part: str, layer: int, prefix: str = "") -> Tensor:
        """A product with stored weights, and their bias if there is one."""
        names = NAMES[self.layout]
        name = names.layer.format(layer) + expert_name(names.parts[part], prefix)
        return linear(hidden, self.weights[f"{name}.weight"], self.weights.get(f"{name}.bias"))
