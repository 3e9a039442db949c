"""The diffusion worker's process: ``braid-diffusion-worker``."""

from __future__ import annotations

import os
import sys

from pydantic import Field
from transformers import PreTrainedModel

from services.chassis.process import Stop, run_service
from services.diffusion_worker.diffusion_gemma import DiffusionGemma
from services.diffusion_worker.family import BlockDiffusion, MaskedDiffusion
from services.generation.checkpoint import Checkpoint
from services.generation.loading import Kind
from services.generation.sequence import Family
from services.generation.settings import WorkerSettings
from services.generation.types import Paradigm
from services.generation.worker import run_worker

NAME = "braid-diffusion-worker"


class DiffusionWorkerSettings(WorkerSettings):
    """A worker of group ``diffusion`` unless told otherwise."""

    group: str = Field("diffusion", description="group of this node")


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


async def serve(settings: DiffusionWorkerSettings, stop: Stop) -> None:
    """Runs one worker until ``stop``."""
    await run_worker(settings, stop, Kind("diffusion-worker", Paradigm.DIFFUSION, open_family))


def main() -> None:
    """Console entry point."""
    sys.exit(run_service(NAME, DiffusionWorkerSettings, serve, sys.argv[1:], dict(os.environ)))


if __name__ == "__main__":
    main()
