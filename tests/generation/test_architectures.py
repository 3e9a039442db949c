"""Published layouts: each computes what its authors' equations say, or is refused by name."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import BertConfig, Gemma2Config, LlamaConfig, PreTrainedConfig, Qwen3Config

from braid.inference.v1 import inference_pb2 as pb
from services.generation.architectures import PUBLISHED, check_plain
from services.generation.card import CheckpointError
from services.generation.checkpoint import load_model, read_checkpoint
from services.generation.sequence import Rows
from services.generation.slot_model import SlotModel
from tests.checkpoints import BLOCK
from tests.generation.serving import serving
from tests.published import CARDS, LAYOUTS, Reference, write_published

TOKENS = [5 + 11 * place % 200 for place in range(3 * BLOCK)]


def spoil(path: Path, changes: dict[str, Any]) -> None:
    """Changes fields of a JSON file; None takes a field out."""
    described = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({k: v for k, v in described.items() if v is not None}))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_published_layouts_give_the_published_logits(layout: str, tmp_path: Path) -> None:
    """Every tensor lands where the equations want it, under full and block-causal attention."""
    folder = write_published(tmp_path, layout)
    module = load_model(read_checkpoint(folder), "cpu", "float32")
    model = SlotModel(module, slots=1, max_context=len(TOKENS))
    reference = Reference(layout, load_file(folder / "model.safetensors"))
    whole = CARDS[layout]["family"] == "masked_diffusion"
    reach = [len(TOKENS) if whole else (i // BLOCK + 1) * BLOCK for i in range(len(TOKENS))]
    given = model.forward([(0, Rows(TOKENS, 0, reach, list(range(len(TOKENS)))))])
    seen = torch.arange(len(TOKENS))[None, :] < torch.tensor(reach)[:, None]
    torch.testing.assert_close(given, reference.logits(TOKENS, seen), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("layout", LAYOUTS)
async def test_published_layouts_answer(layout: str, tmp_path: Path) -> None:
    """Each is served by its family; a gap needs no template where both its sides are seen."""
    async with serving(write_published(tmp_path, layout)) as worker:
        sampling = pb.Sampling(max_new_tokens=12, seed=1)
        finished = (await worker.pieces(prompt="abc", sampling=sampling))[1]
        assert finished.usage.denoise_steps > 0
        gap = pb.Infill(prefix="four", suffix="sevenths")
        finished = (await worker.pieces(infill=gap, sampling=sampling))[1]
        marks = 0 if CARDS[layout]["family"] == "masked_diffusion" else 3
        assert finished.usage.prompt_tokens == len("four") + len("sevenths") + marks
        texts, finished = await worker.pieces(
            edit=pb.Edit(text="kept, old", spans=[pb.Span(start=6, end=9)]), sampling=sampling
        )
        assert "".join(texts).startswith("kept, ")


def test_every_published_layout_is_tested() -> None:
    """No layout is in the table without a checkpoint made like it."""
    assert set(PUBLISHED) == set(LAYOUTS)


@pytest.mark.parametrize(
    ("layout", "changes", "named"),
    [
        ("llada", {"block_type": "sequential"}, "block_type is 'sequential'"),
        ("llada", {"alibi": True}, "alibi is True"),
        ("llada", {"include_bias": True}, "include_bias is True"),
        ("llada", {"include_qkv_bias": True}, "include_qkv_bias is True"),
        ("llada", {"layer_norm_type": "default"}, "layer_norm_type is 'default'"),
        ("llada", {"attention_layer_norm": True}, "attention_layer_norm is True"),
        ("llada", {"scale_logits": True}, "scale_logits is True"),
        ("llada", {"input_emb_norm": True}, "input_emb_norm is True"),
        ("llada", {"activation_type": "swiglu"}, "activation_type is 'swiglu'"),
        ("llada", {"rope": None}, "rope is None"),
        ("llada", {"n_kv_heads": None}, "n_kv_heads is missing"),
        ("llada", {"rope_scaling": {"type": "linear"}}, "rope_scaling is not known"),
        ("llada", {"architectures": ["LLaDAMoEModelLM"]}, "LLaDAMoEModelLM"),
        ("Dream", {"use_mrope": True}, "use_mrope is True"),
        ("Dream", {"architectures": ["DreamForCausalLM"]}, "DreamForCausalLM"),
        ("sdar", {"use_sliding_window": True}, "use_sliding_window is True"),
        ("sdar", {"rope_scaling": {"type": "magic", "factor": 2.0}}, "magic"),
        ("sdar", {"rope_scaling": {"type": "dynamic", "factor": 2.0}}, "rope_type dynamic"),
        ("sdar", {"block_size": 4}, "block_length must be 4"),
        ("Fast_dLLM_Qwen", {"bd_size": 32}, "block_length must be 32"),
        ("Dream", {"mask_token_id": 3}, "mask_token must be token 3"),
        ("sdar", {"model_type": "sdar2"}, "sdar, sdar_moe, Fast_dLLM_Qwen, Dream, llada"),
    ],
)
def test_what_has_no_twin_is_refused_by_name(
    layout: str, changes: dict[str, Any], named: str, tmp_path: Path
) -> None:
    """A config that asks for anything else than the twin computes says which field does."""
    folder = write_published(tmp_path, layout)
    spoil(folder / "config.json", changes)
    with pytest.raises(CheckpointError) as caught:
        read_checkpoint(folder)
    assert named in str(caught.value)
    assert "config.json" in str(caught.value)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_card_must_say_what_the_checkpoint_is(layout: str, tmp_path: Path) -> None:
    """A card with the wrong family or shift would decode nonsense; it is refused."""
    folder = write_published(tmp_path, layout)
    shift = CARDS[layout]["logit_shift"]
    wrong = {"family": "autoregressive", "logit_shift": not shift, "capabilities": []}
    spoil(folder / "braid.json", wrong)
    with pytest.raises(CheckpointError) as caught:
        read_checkpoint(folder)
    for name, value in CARDS[layout].items():
        assert f"{name} must be {value!r}" in str(caught.value)


def test_shapes_are_compared_under_the_published_names(tmp_path: Path) -> None:
    """A tensor of the wrong shape is refused before anything is allocated."""
    folder = write_published(tmp_path, "llada")
    spoil(folder / "config.json", {"mlp_hidden_size": 64})
    with pytest.raises(CheckpointError, match=r"down_proj.*\[32, 48\], the config says \[32, 64\]"):
        load_model(read_checkpoint(folder), "cpu", "auto")


def test_a_tensor_that_is_not_loaded_ends_the_start(tmp_path: Path) -> None:
    """Where transformers would go on with random numbers, the tensor is named and refused."""
    checkpoint = read_checkpoint(write_published(tmp_path, "llada"))
    blocks = r"^model\.transformer\.blocks\.(\d+)\."
    tensors = {pattern: new for pattern, new in checkpoint.tensors.items() if "_proj" not in new}
    tensors[blocks + r"([qkv])_proj\."] = r"model.layers.\1.self_attn.\2_proj."
    tensors[blocks + r"ff_proj\."] = r"model.layers.\1.mlp.gate_proj."
    tensors[blocks + r"up_proj\."] = r"model.layers.\1.mlp.up_proj."
    tensors[blocks + r"attn_out\."] = r"model.layers.\1.self_attn.o_proj."
    tensors[blocks + r"ff_out\."] = r"model.layers.\1.mlp.down_proj."
    with pytest.raises(CheckpointError, match=r"self_attn\.k_proj\.weight.*: not loaded"):
        load_model(replace(checkpoint, tensors=tensors), "cpu", "float32")


@pytest.mark.parametrize(
    ("config", "named"),
    [
        (Gemma2Config(), "softcapping"),
        (Qwen3Config(use_sliding_window=True, sliding_window=64, max_window_layers=0), "sliding"),
        (BertConfig(), "num_key_value_heads"),
        (LlamaConfig(rope_parameters={"rope_type": "dynamic", "factor": 2.0}), "dynamic"),
    ],
)
def test_decoders_that_the_slots_cannot_run_are_refused(
    config: PreTrainedConfig, named: str
) -> None:
    """What attention over slots would silently leave out is refused by name."""
    with pytest.raises(CheckpointError, match=named):
        check_plain(config)


@pytest.mark.parametrize("config", [LlamaConfig(), Qwen3Config()])
def test_plain_decoders_pass(config: PreTrainedConfig) -> None:
    """What the slots run exactly is let through."""
    check_plain(config)
