"""8-bit weights through torchao, which lies apart from what the other tests import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from services.generation.card import CheckpointError
from services.generation.checkpoint import load_model, read_checkpoint
from services.generation.model_size import size_of
from services.generation.stored_tensors import stored_tensors
from tests.worker_process import ROOT

TORCHAO = Path(sys.prefix) / "int8"


@pytest.fixture(scope="module")
def figures(ar_checkpoint: Path) -> dict[str, float]:
    """Of a tiny model in 8 bits, beside the same one whole."""
    if not TORCHAO.is_dir():
        pytest.skip(f"make installs torchao into {TORCHAO}")
    path = os.pathsep.join([str(ROOT), str(ROOT / "protos"), str(TORCHAO)])
    answer = subprocess.run(
        [sys.executable, "-m", "tests.generation.int8_figures", str(ar_checkpoint)],
        env=os.environ | {"PYTHONPATH": path},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
    )
    found: dict[str, float] = json.loads(answer.stdout.splitlines()[-1])
    return found


def test_weights_in_8_bits_are_as_big_as_planned(
    figures: dict[str, float], ar_checkpoint: Path
) -> None:
    """The plan of 8-bit weights is right to the byte, and smaller than that of whole ones."""
    assert figures["planned"] == figures["held"]
    tensors = stored_tensors(ar_checkpoint)
    assert figures["held"] < size_of(read_checkpoint(ar_checkpoint), tensors, "auto").weights_bytes


def test_model_in_8_bits_computes_nearly_the_same(figures: dict[str, float]) -> None:
    """Logits point the same way, and most tokens are chosen alike."""
    assert figures["likeness"] > 0.99
    assert figures["same_choice"] >= 0.9


def test_without_torchao_it_is_named(ar_checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker told to take 8 bits says which extra it lacks."""
    monkeypatch.setitem(sys.modules, "torchao.quantization", None)
    with pytest.raises(CheckpointError, match="needs torchao, the int8 extra"):
        load_model(read_checkpoint(ar_checkpoint), "cpu", "int8")
