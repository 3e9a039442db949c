"""What an autoregressive worker serves."""

from __future__ import annotations

from transformers import PreTrainedModel

from services.ar_worker.sequence import NextToken
from services.generation.checkpoint import Checkpoint
from services.generation.kind import Kind
from services.generation.sequence import Family
from services.generation.types import Paradigm


def open_family(checkpoint: Checkpoint, _module: PreTrainedModel) -> Family:
    """Token by token, as the checkpoint's card has it."""
    return NextToken(checkpoint.vocabulary)


KIND = Kind("ar-worker", Paradigm.AUTOREGRESSIVE, open_family)
