"""What a model will take, reckoned from headers: right, refused where it is too much."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import Qwen3Config, Qwen3ForCausalLM, Qwen3MoeConfig, Qwen3MoeForCausalLM

from services.chassis.process import StartFailure
from services.generation.checkpoint import load_model, read_checkpoint
from services.generation.device_memory import RECOVERED_SHARE, DeviceMemory, MemoryGate
from services.generation.memory_plan import DoesNotFit, MemoryPlan, in_words
from services.generation.model_size import ModelSize, size_of
from services.generation.slot_model import SlotModel
from services.generation.slots import GRAIN, CacheShape
from services.generation.stored_tensors import stored_tensors
from services.generation.types import Paradigm
from tests.checkpoints import write_checkpoint

SIZE = ModelSize(
    parameters_total=10**6,
    parameters_active=10**6,
    weights_bytes=4 * 10**6,
    cache=CacheShape(4, 2, 16, torch.float32, torch.device("cpu")),
    item_bytes=4,
    hidden=64,
    inner=128,
    heads=4,
    vocabulary=1000,
    wanted_rows=8,
    sees_right=False,
)
FIXED = MemoryPlan(SIZE, slots=1, max_context=GRAIN, prefix_bytes=0, room_bytes=0).total_bytes


def plan(room_bytes: int, slots: int = 8, max_context: int = 1024) -> MemoryPlan:
    return MemoryPlan(SIZE, slots, max_context, prefix_bytes=0, room_bytes=room_bytes)


def size(folder: Path, dtype: str) -> ModelSize:
    return size_of(read_checkpoint(folder), stored_tensors(folder), dtype)


@pytest.mark.parametrize("dtype", ["auto", "float32", "bfloat16", "float16"])
def test_weights_are_as_big_as_planned(dtype: str, ar_checkpoint: Path) -> None:
    """The plan's weights are, to the byte, those of the model that is then loaded."""
    planned = size(ar_checkpoint, dtype)
    model = load_model(read_checkpoint(ar_checkpoint), "cpu", dtype)
    assert planned.weights_bytes == sum(weight.nbytes for weight in model.parameters())
    assert planned.parameters_total == sum(weight.numel() for weight in model.parameters())
    assert planned.cache is not None
    assert planned.cache.dtype is model.dtype


def test_slots_are_as_big_as_planned(ar_checkpoint: Path) -> None:
    """The plan's keys and values are, to the byte, those that the slots then hold."""
    planned = MemoryPlan(size(ar_checkpoint, "auto"), 3, 200, prefix_bytes=0, room_bytes=0)
    model = SlotModel(
        load_model(read_checkpoint(ar_checkpoint), "cpu", "auto"), slots=3, max_context=200
    )
    assert planned.cache_bytes == model._cache._tokens.nbytes


def test_mixture_computes_with_the_experts_it_chooses(tmp_path: Path) -> None:
    """Memory follows all experts of a mixture, compute those that a token is sent to."""
    shape: dict[str, Any] = {
        "vocab_size": 272,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "moe_intermediate_size": 24,
        "tie_word_embeddings": False,
    }
    write_checkpoint(tmp_path, Paradigm.AUTOREGRESSIVE)
    Qwen3MoeForCausalLM(
        Qwen3MoeConfig(**shape, num_experts=8, num_experts_per_tok=2)
    ).save_pretrained(tmp_path)
    planned = size(tmp_path, "auto")
    expert = 3 * 32 * 24
    assert planned.parameters_total - planned.parameters_active == 2 * (8 - 2) * expert
    assert planned.flops_per_token == 2 * planned.parameters_active
    model = load_model(read_checkpoint(tmp_path), "cpu", "auto")
    assert planned.parameters_total == sum(weight.numel() for weight in model.parameters())


def test_stored_type_is_kept_by_auto(tmp_path: Path) -> None:
    """A checkpoint of two-byte weights is planned with two bytes, and with four where asked."""
    write_checkpoint(tmp_path, Paradigm.AUTOREGRESSIVE)
    config = Qwen3Config.from_pretrained(tmp_path)
    Qwen3ForCausalLM(config).bfloat16().save_pretrained(tmp_path)
    assert 2 * size(tmp_path, "auto").weights_bytes == size(tmp_path, "float32").weights_bytes


def test_a_plan_that_fits_passes() -> None:
    """With just enough room there is nothing to refuse."""
    enough = plan(0).total_bytes
    plan(enough).check("tiny v1")
    with pytest.raises(DoesNotFit):
        plan(enough - 1).check("tiny v1")


@given(st.integers(0, plan(0).total_bytes), st.integers(1, 16), st.integers(1, 2000))
def test_alternatives_fit_and_are_the_most(room: int, slots: int, context: int) -> None:
    """What is proposed fits, nothing between it and what was asked does, and none is kept back."""
    wanted = plan(room, slots, context)
    found = wanted.alternatives()
    for other in found:
        assert other.fits
        assert other.slots <= slots
        assert other.max_context <= context
        if other.max_context == context and other.slots + 1 < slots:
            assert not plan(room, other.slots + 1, context).fits
        if other.slots == slots and other.max_context + GRAIN < context:
            assert not plan(room, slots, other.max_context + GRAIN).fits
    if not found and slots > 1 and context > GRAIN:
        assert room < FIXED


def test_refusal_has_the_figures_and_what_would_fit() -> None:
    """The message names parts, room, and the settings that fit."""
    with pytest.raises(DoesNotFit) as caught:
        plan(FIXED + 3 * plan(0).slot_bytes).check("tiny v1")
    told = str(caught.value)
    for word in ("tiny v1", "weights 3.8 MiB", "1024 tokens", "8 slots", "BRAID_SLOTS"):
        assert word in told


def test_weights_alone_too_big_are_said_so() -> None:
    """Where not even one short slot fits, no setting of slots is proposed."""
    with pytest.raises(DoesNotFit, match="no number of slots and no context would fit"):
        plan(SIZE.weights_bytes).check("tiny v1")


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (2**20, "1.0 MiB"), (2**41, "2048.0 GiB")],
)
def test_bytes_in_words(count: int, words: str) -> None:
    """Bytes are told in the unit that suits them."""
    assert in_words(count) == words


def test_memory_comes_back_only_when_clearly_below() -> None:
    """Over the ceiling memory is insufficient, and stays so until it is well under it."""
    gate = MemoryGate()
    looks = (1000, 1001, 1000, int(1000 * RECOVERED_SHARE) + 1, int(1000 * RECOVERED_SHARE), 1000)
    assert [gate.look(used, 1000) for used in looks] == [True, False, False, False, True, True]


def test_host_memory_is_bounded_by_its_settings() -> None:
    """The limit bounds what counts as this worker's, the fraction what it may fill of it."""
    free, bounded = DeviceMemory("cpu"), DeviceMemory("cpu", 10**6, 0.5)
    assert free.total_bytes > free.used_bytes > 10**6
    assert 0 < free.room_bytes < free.total_bytes
    assert (bounded.total_bytes, bounded.ceiling_bytes) == (10**6, 500_000)
    assert bounded.room_bytes == 0


@pytest.mark.parametrize("device", ["cuda:99", "abacus", ""])
def test_device_that_is_not_here_is_named(device: str) -> None:
    """A device that the machine lacks ends the start before anything is fetched for it."""
    with pytest.raises(StartFailure, match=f"device '{device}' is"):
        DeviceMemory(device)
