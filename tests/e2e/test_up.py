"""`braid up` and `braid demo` as an operator runs them: whole processes."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import STDOUT, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from braid.inference.v1 import inference_pb2 as inference
from braid.inference.v1.inference_pb2_grpc import InferenceServiceStub
from services.chassis.channel import open_channel
from services.cli.demo_requests import DEMO_REQUESTS
from services.cli.mesh_record import MeshRecord
from services.cli.model_store import DEFAULT_STORE
from services.cli.names import task_name
from tests.eventually import eventually

pytestmark = pytest.mark.timeout(240)

BRAID = (sys.executable, "-m", "services.cli")
PARTS = 4
"""etcd, config center, router and one worker."""

READY_S = 100.0
"""The figure is 20 s on an idle machine; a test machine may be busy."""


@dataclass
class Run:
    """One run of the command; its output goes to a file."""

    process: Process
    output: Path

    def text(self) -> str:
        """What it has printed so far."""
        return self.output.read_text()

    async def ended(self, timeout_s: float) -> int:
        """Its exit code."""
        return await asyncio.wait_for(self.process.wait(), timeout_s)


@asynccontextmanager
async def braid(output: Path, *arguments: str) -> AsyncIterator[Run]:
    """A run of `braid`; killed at the end if it still runs."""
    with output.open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            *BRAID, *arguments, "--store", str(DEFAULT_STORE), stdout=file, stderr=STDOUT
        )
    try:
        yield Run(process, output)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@asynccontextmanager
async def braid_up(folder: Path) -> AsyncIterator[tuple[Run, MeshRecord]]:
    """`braid up` in ``folder`` once it is ready."""
    async with braid(folder / "out", "up", "--state-dir", str(folder), "--no-ar") as run:
        record = await eventually(lambda: recorded_by(run, folder), timeout_s=READY_S)
        assert record is not None
        yield run, record


def recorded_by(run: Run, state_dir: Path) -> MeshRecord | None:
    """The mesh's record, if it is this run's."""
    if run.process.returncode is not None:
        pytest.fail(run.text())
    record = MeshRecord.read(state_dir)
    ours = record is not None and record.pids.etcd in {part.pid for part in parts(run)}
    return record if ours else None


def parts(run: Run) -> list[psutil.Process]:
    return psutil.Process(run.process.pid).children(recursive=True)


def all_ended(processes: list[psutil.Process]) -> bool:
    return not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in processes)


async def complete(record: MeshRecord) -> inference.GenerateResponse:
    request = inference.GenerateRequest(task=inference.TASK_CODE_COMPLETION, prompt="def f():\n")
    async with open_channel(record.router) as channel:
        response: inference.GenerateResponse = await InferenceServiceStub(channel).Generate(
            request, timeout=60
        )
    return response


async def test_sigterm_drains_and_leaves_nothing(tmp_path: Path) -> None:
    """A mesh killed -9 is followed by a clean one in the same folder; SIGTERM ends all of it.

    The second mesh loses its router to kill -9 before it is stopped.
    """
    async with braid_up(tmp_path) as (first, _):
        left = parts(first)
        first.process.kill()
        await first.process.wait()
    async with braid_up(tmp_path) as (second, record):
        assert all_ended(left)
        assert (await complete(record)).served_by.node_id == "diffusion-1"
        running = parts(second)
        os.kill(record.pids.router, signal.SIGKILL)
        await eventually(lambda: "router           ended unasked, signal 9" in second.text())
        second.process.send_signal(signal.SIGTERM)
        assert await second.ended(timeout_s=60) == 0, second.text()
    assert len(running) == PARTS
    assert all_ended(running)
    assert MeshRecord.read(tmp_path) is None


async def test_demo_prints_one_row_a_task(tmp_path: Path) -> None:
    """`braid demo` answers a request of each task, says so in a table and exits 0."""
    async with braid(tmp_path / "out", "demo") as run:
        assert await run.ended(timeout_s=200) == 0, run.text()
    assert all(task_name(asked.request.task) in run.text() for asked in DEMO_REQUESTS)
    assert "FAILED" not in run.text()
