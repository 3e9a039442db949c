"""A mesh for as long as some work takes, or until a signal."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from rich.console import Console

from services.cli.failure import EXIT_FAILED
from services.cli.mesh import Mesh
from services.cli.mesh_plan import MeshOptions
from services.cli.mesh_record import MeshRecord
from services.cli.progress import Progress

T = TypeVar("T")


async def with_mesh(
    options: MeshOptions, console: Console, work: Callable[[MeshRecord], Awaitable[T]]
) -> T | None:
    """Starts a mesh, runs ``work``, stops the mesh and returns the result.

    The first SIGINT or SIGTERM ends the work, and the result is None; the
    second kills every part and this process. Raises MeshFailure.
    """
    with Progress(console) as progress:
        mesh = Mesh(options, progress.report)
        running = asyncio.create_task(_run(mesh, progress, work))
        _obey_signals(running, mesh)
        try:
            return await running
        except asyncio.CancelledError:
            return None


async def _run(mesh: Mesh, progress: Progress, work: Callable[[MeshRecord], Awaitable[T]]) -> T:
    record = await mesh.start()
    try:
        progress.settle()
        return await work(record)
    finally:
        await mesh.stop()


def _obey_signals(running: asyncio.Task[Any], mesh: Mesh) -> None:
    signals = 0

    def on_signal() -> None:
        nonlocal signals
        signals += 1
        if signals > 1:
            mesh.kill()
            os._exit(EXIT_FAILED)
        running.cancel()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)
