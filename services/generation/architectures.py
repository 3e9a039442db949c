"""Published checkpoints that transformers knows under another name.

Such a checkpoint's config.json is read as the config of an architecture of
transformers that computes exactly the same, its exact twin, and its tensors are
renamed to the twin's. Code that comes with a checkpoint is never run. What no
twin computes is refused by the name of the field.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from transformers import (
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    LlamaConfig,
    PreTrainedConfig,
    Qwen2Config,
    Qwen3Config,
    Qwen3MoeConfig,
)
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from services.generation.card import CheckpointError, ModelCard
from services.generation.published import Published, Values

_QWEN: Mapping[str, Values] = {"use_sliding_window": (False, None), "use_mrope": (False, None)}

_LLADA = Published(
    "LLaDAModelLM",
    LlamaConfig,
    "masked_diffusion",
    logit_shift=False,
    values={
        "activation_type": ("silu",),
        "alibi": (False, None),
        "attention_layer_norm": (False, None),
        "bias_for_layer_norm": (False, None),
        "block_group_size": (1, None),
        "block_type": ("llama",),
        "include_bias": (False,),
        "include_qkv_bias": (False, None),
        "input_emb_norm": (False, None),
        "layer_norm_type": ("rms",),
        "layer_norm_with_affine": (True, None),
        "multi_query_attention": (False, None),
        "rope": (True,),
        "rope_full_precision": (True, None),
        "scale_logits": (False, None),
    },
    fields={
        "d_model": "hidden_size",
        "embedding_size": "vocab_size",
        "max_sequence_length": "max_position_embeddings",
        "mlp_hidden_size": "intermediate_size",
        "n_heads": "num_attention_heads",
        "n_kv_heads": "num_key_value_heads",
        "n_layers": "num_hidden_layers",
        "rms_norm_eps": "rms_norm_eps",
        "rope_theta": "rope_theta",
        "weight_tying": "tie_word_embeddings",
    },
    idle=frozenset(
        {
            "alibi_bias_max",
            "attention_dropout",
            "attention_layer_norm_with_affine",
            "bos_token_id",
            "dtype",
            "embedding_dropout",
            "eos_token_id",
            "flash_attention",
            "init_cutoff_factor",
            "init_device",
            "init_fn",
            "init_std",
            "mask_token_id",
            "mlp_ratio",
            "pad_token_id",
            "precision",
            "residual_dropout",
            "torch_dtype",
            "use_cache",
            "vocab_size",
        }
    ),
    tensors={
        r"^model\.transformer\.wte\.": r"model.embed_tokens.",
        r"^model\.transformer\.ln_f\.": r"model.norm.",
        r"^model\.transformer\.ff_out\.": r"lm_head.",
        r"^model\.transformer\.blocks\.(\d+)\.q_proj\.": r"model.layers.\1.self_attn.q_proj.",
        r"^model\.transformer\.blocks\.(\d+)\.k_proj\.": r"model.layers.\1.self_attn.k_proj.",
        r"^model\.transformer\.blocks\.(\d+)\.v_proj\.": r"model.layers.\1.self_attn.v_proj.",
        r"^model\.transformer\.blocks\.(\d+)\.attn_out\.": r"model.layers.\1.self_attn.o_proj.",
        r"^model\.transformer\.blocks\.(\d+)\.attn_norm\.": r"model.layers.\1.input_layernorm.",
        r"^model\.transformer\.blocks\.(\d+)\.ff_norm\.": (
            r"model.layers.\1.post_attention_layernorm."
        ),
        r"^model\.transformer\.blocks\.(\d+)\.ff_proj\.": r"model.layers.\1.mlp.gate_proj.",
        r"^model\.transformer\.blocks\.(\d+)\.up_proj\.": r"model.layers.\1.mlp.up_proj.",
        r"^model\.transformer\.blocks\.(\d+)\.ff_out\.": r"model.layers.\1.mlp.down_proj.",
    },
)

PUBLISHED: Mapping[str, Published] = {
    "sdar": Published(
        "SDARForCausalLM",
        Qwen3Config,
        "masked_block_diffusion",
        logit_shift=False,
        block_length="block_size",
        values=_QWEN,
    ),
    "sdar_moe": Published(
        "SDARMoeForCausalLM",
        Qwen3MoeConfig,
        "masked_block_diffusion",
        logit_shift=False,
        block_length="block_size",
        values=_QWEN,
    ),
    "Fast_dLLM_Qwen": Published(
        "Fast_dLLM_QwenForCausalLM",
        Qwen2Config,
        "masked_block_diffusion",
        logit_shift=True,
        block_length="bd_size",
        values=_QWEN,
    ),
    "Dream": Published(
        "DreamModel", Qwen2Config, "masked_diffusion", logit_shift=True, values=_QWEN
    ),
    "llada": _LLADA,
}
"""Each published layout by its model_type."""

SELF_DRIVEN: Mapping[str, Any] = {"diffusion_gemma": AutoModelForImageTextToText}
"""Architectures that run by their own generate, with the auto class that makes each; their
families have the same names."""

_PLAIN: Mapping[str, Values] = {
    "sliding_window": (None,),
    "attn_logit_softcapping": (None,),
    "final_logit_softcapping": (None,),
    "logit_scale": (None, 1),
    "logits_scaling": (None, 1),
}
"""Fields by which a decoder of transformers does what the slots do not."""
_ROTATIONS = ("default", "linear", "llama3", "yarn")
"""Kinds that do not depend on the longest sequence of a forward, and so on batch mates."""


def published_as(model_type: str) -> Published | None:
    """The published layout of this name, None for an architecture of transformers' own.

    Raises CheckpointError, naming what there is, for a type that nothing here computes.
    """
    if model_type in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES or model_type in SELF_DRIVEN:
        return None
    if model_type not in PUBLISHED:
        raise CheckpointError(
            f"model_type {model_type} is not supported; supported are {', '.join(PUBLISHED)}"
            f", {', '.join(SELF_DRIVEN)}"
            " and the decoders that transformers has itself (llama, qwen2, qwen3, qwen3_moe, ...)"
        )
    return PUBLISHED[model_type]


def class_of(config: PreTrainedConfig) -> Any:
    """The auto class of transformers that makes the config's model."""
    return SELF_DRIVEN.get(config.model_type, AutoModelForCausalLM)


def check_runnable(config: PreTrainedConfig, card: ModelCard) -> None:
    """Raises CheckpointError for a model that the card's way of running cannot run exactly."""
    own = config.model_type in SELF_DRIVEN
    if own != card.self_driven or (own and card.family != config.model_type):
        raise CheckpointError(f"family {card.family} cannot run model_type {config.model_type}")
    if not own:
        check_plain(config)
    elif card.block_length != config.canvas_length:
        raise CheckpointError(f"block_length must be the canvas_length {config.canvas_length}")


def check_plain(config: PreTrainedConfig) -> None:
    """Raises CheckpointError for a decoder that the slots cannot run exactly."""
    faults = [
        f"{name} {getattr(config, name)!r}"
        for name, values in _PLAIN.items()
        if getattr(config, name, None) not in values
    ]
    kinds = set(getattr(config, "layer_types", None) or ()) - {"full_attention"}
    faults += [f"layers of {kind}" for kind in sorted(kinds)]
    rotation = (getattr(config, "rope_parameters", None) or {}).get("rope_type", "default")
    if rotation not in _ROTATIONS:
        faults.append(f"rope_type {rotation}")
    if getattr(config, "num_key_value_heads", None) is None:
        faults.append(f"{config.model_type} without num_key_value_heads")
    if faults:
        raise CheckpointError(f"{', '.join(faults)} cannot be served")
