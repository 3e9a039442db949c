"""Loads a checkpoint in 8 bits and whole, and prints how they compare, as JSON.

python -m tests.generation.int8_figures CHECKPOINT, with torchao on the path.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch

from services.generation.checkpoint import load_model, read_checkpoint
from services.generation.model_size import size_of
from services.generation.sequence import Rows
from services.generation.slot_model import SlotModel
from services.generation.stored_tensors import stored_tensors


def bytes_of(weight: Any) -> int:
    """What a weight holds, in 8 bits or whole."""
    parts = (weight.qdata, weight.scale) if hasattr(weight, "qdata") else (weight,)
    return sum(part.nbytes for part in parts)


def main() -> None:
    """Prints the figures."""
    checkpoint = read_checkpoint(Path(sys.argv[1]))
    small = load_model(checkpoint, "cpu", "int8")
    held = sum(bytes_of(weight) for weight in small.parameters())
    tokens = list(range(60, 100))
    rows = Rows(tokens, 0, list(range(1, len(tokens) + 1)), list(range(len(tokens))))
    logits = [
        SlotModel(module, slots=1, max_context=64).forward([(0, rows)])
        for module in (small, load_model(checkpoint, "cpu", "auto"))
    ]
    same = (logits[0].argmax(-1) == logits[1].argmax(-1)).float().mean()
    size = size_of(checkpoint, stored_tensors(checkpoint.folder), "int8")
    apart = torch.nn.functional.cosine_similarity(logits[0], logits[1]).min()
    print(
        json.dumps(
            {
                "planned": size.weights_bytes,
                "held": held,
                "likeness": float(apart),
                "same_choice": float(same),
            }
        )
    )


if __name__ == "__main__":
    main()
