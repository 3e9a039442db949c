"""A model that takes its time, and a call that lets it."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from braid.inference.v1 import inference_pb2 as pb
from services.generation.checkpoint import load_model, read_checkpoint
from services.generation.sequence import Rows
from services.generation.slot_model import SlotModel
from tests.generation.requests import LIMITS


def endless() -> pb.Sampling:
    """An answer that is cut by nothing but time."""
    return pb.Sampling(max_new_tokens=64, temperature=1.0, seed=3)


class SlowModel(SlotModel):
    """A real decoder that takes its time, finds no end, and stands still unless ``going``."""

    def __init__(self, folder: Path, pause_s: float) -> None:
        checkpoint = read_checkpoint(folder)
        module = load_model(checkpoint, "cpu", "float32")
        self._eos = torch.tensor([checkpoint.vocabulary.eos_id])
        super().__init__(module, slots=LIMITS.max_batch_size, max_context=LIMITS.max_context)
        self._pause_s = pause_s
        self.forwards = 0
        self.going = threading.Event()
        self.going.set()

    def forward(self, batch: Sequence[tuple[int, Rows]]) -> Tensor:
        """As a decoder's, later."""
        self.forwards += 1
        time.sleep(self._pause_s)
        self.going.wait(20)
        logits = super().forward(batch)
        with torch.inference_mode():
            return logits.index_fill(1, self._eos, -torch.inf)
