"""Cards and checkpoints: what is wrong is named by file and field, and nothing unsafe is read."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from services.generation.card import CheckpointError, ModelCard, read_card
from services.generation.checkpoint import load_model, read_checkpoint, shape_faults
from services.generation.types import Paradigm
from tests.checkpoints import card_of


@pytest.fixture
def folder(ar_checkpoint: Path, tmp_path: Path) -> Path:
    """A tiny checkpoint that the test may spoil."""
    return Path(shutil.copytree(ar_checkpoint, tmp_path / "checkpoint"))


def spoil(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"family": "magic"}, "family"),
        ({"max_context": 0}, "max_context"),
        ({"eos_token": ""}, "eos_token"),
        ({"warmup": []}, "warmup"),
        ({"capabilities": ["flight"]}, "capabilities.0"),
        ({"surprise": 1}, "surprise"),
        ({"defaults": {"confidence_threshold": 1.5}}, "defaults.confidence_threshold"),
        ({"defaults": {"factor": 0}}, "defaults.factor"),
        ({"defaults": {"entropy_bound": math.nan}}, "defaults.entropy_bound"),
        ({"defaults": {"strategy": "luck"}}, "defaults.strategy"),
        ({"defaults": {"strategy": "greedy"}}, "defaults.strategy"),
        ({"block_length": 12}, "block_length"),
        ({"block_lengths": [8, 12]}, "block_lengths"),
        ({"block_lengths": [4, 16]}, "block_lengths"),
        ({"prompt": {}}, "prompt.plain"),
        ({"parameters_active": 10**9}, "parameters_active"),
        ({"thinking": None}, "thinking"),
        ({"mask_token": None}, "mask_token"),
        ({"prefix_cache": True}, "prefix_cache"),
    ],
)
def test_bad_card_is_named_by_file_and_field(
    changes: dict[str, Any], field: str, tmp_path: Path
) -> None:
    """A card that cannot be used is refused with its file and the field."""
    path = tmp_path / "braid.json"
    path.write_text(json.dumps(card_of(Paradigm.DIFFUSION) | changes))
    with pytest.raises(CheckpointError) as caught:
        read_card(tmp_path)
    assert str(path) in str(caught.value)
    assert field in str(caught.value)


def test_template_must_hold_its_places() -> None:
    """A template without the place for the caller's text is refused."""
    card = card_of(Paradigm.DIFFUSION)
    card["prompt"]["plain"] = "<|user|>"
    with pytest.raises(ValueError, match=r"plain must hold \{prompt\} once"):
        ModelCard.model_validate(card)


def test_a_model_that_sees_both_sides_needs_no_infill_template() -> None:
    """A gap's right side is on the canvas; only then may the template be missing."""
    card = card_of(Paradigm.DIFFUSION)
    del card["prompt"]["infill"]
    with pytest.raises(ValueError, match="capability infill"):
        ModelCard.model_validate(card)
    assert ModelCard.model_validate(card | {"family": "masked_diffusion"}).sees_right


@pytest.mark.parametrize("text", ["", "{", "[]", "nul"])
def test_broken_card_is_named(text: str, tmp_path: Path) -> None:
    """A card that is no JSON object is refused with its file."""
    (tmp_path / "braid.json").write_text(text)
    with pytest.raises(CheckpointError, match=r"braid\.json"):
        read_card(tmp_path)


def test_whole_checkpoint_loads(folder: Path) -> None:
    """A sound checkpoint loads with the type asked for, and its token ids are the tokenizer's."""
    checkpoint = read_checkpoint(folder)
    model = load_model(checkpoint, "cpu", "bfloat16")
    assert model.dtype is torch.bfloat16
    assert not model.training
    vocabulary = checkpoint.vocabulary
    assert vocabulary.eos_id == checkpoint.codec.special("<|eos|>")
    assert vocabulary.piece(vocabulary.eos_id) == b""


@pytest.mark.parametrize("name", ["braid.json", "tokenizer.json", "config.json"])
def test_missing_file_is_named(name: str, folder: Path) -> None:
    """Each file that is missing is named."""
    (folder / name).unlink()
    with pytest.raises(CheckpointError, match=name.replace(".", r"\.")):
        read_checkpoint(folder)


def test_tokenizer_in_other_files_is_pointed_out(folder: Path) -> None:
    """Published as vocab.json and merges.txt: the refusal says where to look for a way out."""
    tokenizer = folder / "tokenizer.json"
    described = json.loads(tokenizer.read_text(encoding="utf-8"))
    tokenizer.unlink()
    (folder / "vocab.json").write_text(json.dumps(described["model"]["vocab"]), encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"tokenizer\.json: is missing$"):
        read_checkpoint(folder)
    (folder / "merges.txt").write_text("#version: 0.2\n", encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"is missing; vocab\.json and merges\.txt"):
        read_checkpoint(folder)


def test_pickles_are_not_read(folder: Path) -> None:
    """Weights in any form but safetensors are as good as none."""
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match=r"no \.safetensors file"):
        load_model(read_checkpoint(folder), "cpu", "auto")


def test_code_of_a_checkpoint_is_not_run(folder: Path, tmp_path: Path) -> None:
    """A config that brings its own classes gets none of them."""
    proof = tmp_path / "ran"
    (folder / "evil.py").write_text(f"open({str(proof)!r}, 'w')\nclass Config: ...\n")
    spoil(folder / "config.json", auto_map={"AutoConfig": "evil.Config"}, model_type="evil")
    with pytest.raises(CheckpointError, match=r"config\.json"):
        read_checkpoint(folder)
    assert not proof.exists()


def test_vocabulary_must_hold_the_tokenizer(folder: Path) -> None:
    """A config with fewer tokens than the tokenizer is refused."""
    spoil(folder / "config.json", vocab_size=100)
    with pytest.raises(CheckpointError, match="vocab_size 100"):
        read_checkpoint(folder)


def test_shapes_are_compared_before_the_weights_are_read(folder: Path) -> None:
    """A config that asks for other shapes is refused with the first differences."""
    spoil(folder / "config.json", intermediate_size=64)
    with pytest.raises(CheckpointError, match=r"mlp.*shape \[48, 32\], the config says \[64, 32\]"):
        load_model(read_checkpoint(folder), "cpu", "auto")


def test_missing_and_foreign_weights_are_named(folder: Path) -> None:
    """Weights that are missing or belong to no part of the model are refused by name."""
    path = folder / "model.safetensors"
    weights = load_file(path)
    weights["stranger"] = weights.pop("model.norm.weight")
    save_file(weights, path)
    with pytest.raises(CheckpointError, match=r"model\.norm\.weight: missing; stranger: not in"):
        load_model(read_checkpoint(folder), "cpu", "auto")


def test_truncated_weights_are_named(folder: Path) -> None:
    """A file cut in its middle is refused, not read as far as it goes."""
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(CheckpointError, match=r"model\.safetensors"):
        load_model(read_checkpoint(folder), "cpu", "auto")


@pytest.mark.parametrize("file", ["../model.safetensors", "pytorch_model.bin", "other.safetensors"])
def test_index_that_names_another_file_is_refused(file: str, folder: Path) -> None:
    """What an index names is what was verified and compared, or nothing is loaded."""
    names = load_file(folder / "model.safetensors")
    spoil_index(folder, dict.fromkeys(names, "model.safetensors"))
    load_model(read_checkpoint(folder), "cpu", "auto")
    spoil_index(folder, dict.fromkeys(names, file))
    with pytest.raises(CheckpointError, match=r"index\.json: .* is in model\.safetensors, not in"):
        load_model(read_checkpoint(folder), "cpu", "auto")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"weight_map": []}'])
def test_broken_index_is_named(text: str, folder: Path) -> None:
    """An index that is none is refused with its name."""
    (folder / "model.safetensors.index.json").write_text(text)
    with pytest.raises(CheckpointError, match=r"index\.json"):
        load_model(read_checkpoint(folder), "cpu", "auto")


def spoil_index(folder: Path, names: dict[str, str]) -> None:
    text = json.dumps({"metadata": {}, "weight_map": names})
    (folder / "model.safetensors.index.json").write_text(text)


def test_tensor_in_two_files_is_refused(folder: Path) -> None:
    """A tensor that is stored twice could be either."""
    shutil.copy(folder / "model.safetensors", folder / "model2.safetensors")
    with pytest.raises(CheckpointError, match=r"model2\.safetensors: .* is in model\.safet"):
        load_model(read_checkpoint(folder), "cpu", "auto")


def test_tied_weights_need_not_be_stored() -> None:
    """A tensor that is another one's double may be missing."""
    wanted: dict[str, tuple[int, ...]] = {"a": (2,), "b": (2,)}
    assert shape_faults(wanted, {"a": (2,)}, frozenset({"b"})) == []
    assert shape_faults(wanted, {"a": (2,)}, frozenset()) == ["b: missing"]
