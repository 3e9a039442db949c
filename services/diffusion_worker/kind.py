"""What a diffusion worker serves."""

from __future__ import annotations

from transformers import PreTrainedModel

from services.diffusion_worker.diffusion_gemma import DiffusionGemma
from services.diffusion_worker.family import BlockDiffusion, MaskedDiffusion
from services.generation.checkpoint import Checkpoint
from services.generation.kind import Kind
from services.generation.sequence import Family
from services.generation.types import Paradigm


def open_family(checkpoint: Checkpoint, module: PreTrainedModel) -> Family:
    """Diffusion of the kind that the checkpoint's card names."""
    vocabulary, card = checkpoint.vocabulary, checkpoint.card
    if card.self_driven:
        return DiffusionGemma(vocabulary, module)
    if card.sees_right:
        return MaskedDiffusion(
            vocabulary, logit_shift=card.logit_shift, prefix_cache=card.prefix_cache
        )
    return BlockDiffusion(vocabulary, logit_shift=card.logit_shift)


KIND = Kind("diffusion-worker", Paradigm.DIFFUSION, open_family)
