"""The diffusion worker's process: ``braid-diffusion-worker``.

What imports torch is imported when it is needed: --help and a wrong setting do not
wait for it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from pydantic import Field

from services.chassis.process import Stop, run_service
from services.generation.settings import WorkerSettings

NAME = "braid-diffusion-worker"


class DiffusionWorkerSettings(WorkerSettings):
    """A worker of group ``diffusion`` unless told otherwise."""

    group: str = Field("diffusion", description="group of this node")


async def serve(settings: DiffusionWorkerSettings, stop: Stop) -> None:
    """Runs one worker until ``stop``."""
    from services.diffusion_worker.kind import KIND
    from services.generation.shared_worker import run_process

    await run_process(settings, stop, KIND)


async def check(settings: DiffusionWorkerSettings, sources: Mapping[str, str], stop: Stop) -> None:
    """Loads and warms up as a start would, prints what it found, and serves nobody."""
    from services.diffusion_worker.kind import KIND
    from services.generation.check import check_worker

    await check_worker(settings, sources, stop, KIND)


def main() -> None:
    """Console entry point."""
    sys.exit(
        run_service(NAME, DiffusionWorkerSettings, serve, sys.argv[1:], dict(os.environ), check)
    )


if __name__ == "__main__":
    main()
