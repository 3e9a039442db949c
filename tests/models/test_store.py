"""The checkpoint folders that ship with the repository."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from safetensors import safe_open

from deploy.models.pipeline import AUTOREGRESSIVE_FOLDER, DIFFUSION_FOLDER
from deploy.models.tokenizer import TextCodec

STORE = Path(__file__).parents[2] / "deploy" / "models" / "store"
MEBIBYTE = 1 << 20


@pytest.fixture(params=[AUTOREGRESSIVE_FOLDER, DIFFUSION_FOLDER], ids=["ar", "diffusion"])
def folder(request: pytest.FixtureRequest) -> Path:
    return STORE / str(request.param)


def _json(folder: Path, name: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((folder / name).read_text(encoding="utf-8"))
    return value


def test_manifest_names_every_other_file(folder: Path) -> None:
    """No file of the folder escapes verification."""
    listed = {entry["path"] for entry in _json(folder, "manifest.json")["files"]}
    assert listed == {p.name for p in folder.iterdir()} - {"manifest.json"}


def test_manifest_matches_the_files(folder: Path) -> None:
    """Size and hash of each file are the listed ones."""
    for entry in _json(folder, "manifest.json")["files"]:
        content = (folder / entry["path"]).read_bytes()
        assert entry["size_bytes"] == len(content)
        assert entry["sha256"] == hashlib.sha256(content).hexdigest()


def test_folder_stays_small(folder: Path) -> None:
    """A clone of the repository stays cheap."""
    assert sum(p.stat().st_size for p in folder.iterdir()) <= 16 * MEBIBYTE


def test_parameter_count_is_the_weights_own(folder: Path) -> None:
    """`braid.json` counts what the weights hold."""
    with safe_open(folder / "model.safetensors", "pt") as weights:
        count = sum(weights.get_tensor(name).numel() for name in weights.keys())  # noqa: SIM118 - no mapping
    assert _json(folder, "braid.json")["parameters_total"] == count


def test_named_tokens_are_in_the_tokenizer(folder: Path) -> None:
    """Every special token that `braid.json` names exists."""
    config, codec = _json(folder, "braid.json"), TextCodec.from_file(folder / "tokenizer.json")
    for key in ("eos_token", "pad_token", "mask_token"):
        if key in config:
            assert codec.special(config[key]) >= 0


def test_both_share_one_tokenizer() -> None:
    """A prompt has the same tokens on both workers."""
    first, second = (
        STORE / f / "tokenizer.json" for f in (AUTOREGRESSIVE_FOLDER, DIFFUSION_FOLDER)
    )
    assert first.read_bytes() == second.read_bytes()


def test_only_the_diffusion_model_has_a_block_grid() -> None:
    """Families differ in what they declare."""
    ar, diffusion = (
        _json(STORE / f, "braid.json") for f in (AUTOREGRESSIVE_FOLDER, DIFFUSION_FOLDER)
    )
    assert ("block_length" in ar, diffusion["block_length"], diffusion["logit_shift"]) == (
        False,
        16,
        True,
    )
