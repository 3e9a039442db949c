"""From trained weights to a checkpoint folder that a worker serves."""

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from deploy.models import prompt_format as f
from deploy.models import tokenizer as t
from deploy.models.model import ROPE_THETA, LanguageModel
from deploy.models.tokenizer import TextCodec

BLOCK = 16
MAX_CONTEXT = 512
WARMUP = (
    "Extract name, age, city as JSON: This is Anna Berg. Anna is 41 years old. Home is Oslo.",
    "Ben has 12 mugs. Ben buys 7 more. Then 4 break. How many mugs are left?",
    "Gripper at (10, 4, 7), target is (+3, -2, +0) away. Next actions:",
)
TASKS = (
    "TASK_CODE_COMPLETION", "TASK_STRUCTURED_OUTPUT", "TASK_TEXT_EDITING", "TASK_ACTION_CONTROL",
    "TASK_REASONING", "TASK_MATH", "TASK_CHAT", "TASK_TEXT_GENERATION",
)  # fmt: skip
CAPABILITIES = ("infill", "edit", "template", "json_schema", "regex", "choice", "thinking", "seed")
DIFFUSION_DEFAULTS = {
    "strategy": "distance_threshold",
    "confidence_threshold": 0.95,
    "distance_decay": 0.9,
    "edit_threshold": 0.7,
    "max_steps": 16,
}


def model_config(model: LanguageModel, codec: TextCodec) -> dict[str, Any]:
    """`config.json` as transformers' Qwen3 reads it."""
    shape = model.shape
    return {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        **shape.as_config(),
        "hidden_act": "silu",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "initializer_range": 0.02,
        "rope_theta": ROPE_THETA,
        "rope_scaling": None,
        "rope_parameters": {"rope_type": "default", "rope_theta": ROPE_THETA},
        "layer_types": ["full_attention"] * shape.num_hidden_layers,
        "max_window_layers": shape.num_hidden_layers,
        "use_sliding_window": False,
        "sliding_window": None,
        "tie_word_embeddings": True,
        "bos_token_id": None,
        "eos_token_id": codec.special(t.EOS),
        "pad_token_id": codec.special(t.PAD),
        "torch_dtype": "bfloat16",
        "use_cache": True,
    }


def tokenizer_config() -> dict[str, Any]:
    """`tokenizer_config.json`."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": t.EOS,
        "pad_token": t.PAD,
        "mask_token": t.MASK,
        "clean_up_tokenization_spaces": False,
        "model_max_length": MAX_CONTEXT,
    }


def braid_config(family: str, parameters: int) -> dict[str, Any]:
    """`braid.json`: what a worker has to know beside the weights."""
    config: dict[str, Any] = {
        "family": family,
        "parameters_total": parameters,
        "parameters_active": parameters,
        "max_context": MAX_CONTEXT,
        "eos_token": t.EOS,
        "pad_token": t.PAD,
        "prompt": {
            "plain": f.PLAIN,
            "turns": f.TURNS,
            "open": f.OPEN,
            "infill": f.INFILL,
            "edit": f.EDIT,
        },
        "thinking": {"open": t.THINK, "close": t.END_THINK},
        "capabilities": list(CAPABILITIES),
        "warmup": list(WARMUP),
        "tasks": list(TASKS),
    }
    if family == "masked_block_diffusion":
        config |= {
            "mask_token": t.MASK,
            "block_length": BLOCK,
            "block_origin": "document",
            "logit_shift": True,
            "defaults": DIFFUSION_DEFAULTS,
        }
    else:
        config["defaults"] = {"strategy": "greedy"}
    return config


def manifest(folder: Path) -> dict[str, Any]:
    """Size and hash of every file but the manifest itself."""
    files = sorted(p for p in folder.iterdir() if p.is_file() and p.name != "manifest.json")
    return {
        "files": [
            {
                "path": p.name,
                "size_bytes": p.stat().st_size,
                "sha256": hashlib.sha256(p.read_bytes()).hexdigest(),
            }
            for p in files
        ]
    }


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def export(model: LanguageModel, family: str, tokenizer_file: Path, folder: Path) -> None:
    """Writes the folder; weights in bfloat16, the tied output head left out."""
    folder.mkdir(parents=True, exist_ok=True)
    codec = TextCodec.from_file(tokenizer_file)
    tensors = {
        name: p.detach().to(torch.bfloat16).contiguous() for name, p in model.named_parameters()
    }
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "tokenizer.json").write_bytes(tokenizer_file.read_bytes())
    _write_json(folder / "config.json", model_config(model, codec))
    _write_json(folder / "tokenizer_config.json", tokenizer_config())
    parameters = sum(p.numel() for p in model.parameters())
    _write_json(folder / "braid.json", braid_config(family, parameters))
    _write_json(folder / "manifest.json", manifest(folder))
