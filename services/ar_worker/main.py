"""The autoregressive worker's process: ``braid-ar-worker``."""

from __future__ import annotations

import os
import sys

from pydantic import Field
from transformers import PreTrainedModel

from services.ar_worker.sequence import NextToken
from services.chassis.process import Stop, run_service
from services.generation.checkpoint import Checkpoint
from services.generation.loading import Kind
from services.generation.sequence import Family
from services.generation.settings import WorkerSettings
from services.generation.types import Paradigm
from services.generation.worker import run_worker

NAME = "braid-ar-worker"


class ArWorkerSettings(WorkerSettings):
    """A worker of group ``ar`` unless told otherwise."""

    group: str = Field("ar", description="group of this node")


def open_family(checkpoint: Checkpoint, _module: PreTrainedModel) -> Family:
    """Token by token, as the checkpoint's card has it."""
    return NextToken(checkpoint.vocabulary)


async def serve(settings: ArWorkerSettings, stop: Stop) -> None:
    """Runs one worker until ``stop``."""
    await run_worker(settings, stop, Kind("ar-worker", Paradigm.AUTOREGRESSIVE, open_family))


def main() -> None:
    """Console entry point."""
    sys.exit(run_service(NAME, ArWorkerSettings, serve, sys.argv[1:], dict(os.environ)))


if __name__ == "__main__":
    main()
