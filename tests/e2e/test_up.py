"""`braid up` and `braid demo` as an operator runs them: whole processes."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil

from braid.inference.v1 import inference_pb2 as inference
from braid.inference.v1.inference_pb2_grpc import InferenceServiceStub
from services.chassis.channel import open_channel
from services.cli.demo_requests import DEMO_REQUESTS
from services.cli.mesh_record import MeshRecord
from services.cli.model_store import DEFAULT_STORE
from services.cli.names import task_name
from tests.eventually import eventually

STORE = ("--store", str(DEFAULT_STORE))
BRAID = (sys.executable, "-m", "services.cli")
READY_S = 60.0
"""The figure is 20 s on an idle machine; a test machine may be busy."""


@asynccontextmanager
async def braid_up(state_dir: Path, *arguments: str) -> AsyncIterator[tuple[Process, MeshRecord]]:
    """`braid up` once it is ready; killed at the end if it still runs."""
    process = await asyncio.create_subprocess_exec(
        *BRAID, "up", "--state-dir", str(state_dir), *arguments, stdout=PIPE, stderr=STDOUT
    )
    try:
        record = await eventually(lambda: recorded_by(process, state_dir), timeout_s=READY_S)
        assert record is not None
        yield process, record
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def recorded_by(process: Process, state_dir: Path) -> MeshRecord | None:
    """The mesh's record, if it is this run's."""
    assert process.returncode is None, "braid up has ended"
    record = MeshRecord.read(state_dir)
    ours = record is not None and record.pids.etcd in {part.pid for part in parts(process)}
    return record if ours else None


def parts(process: Process) -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


def all_ended(processes: list[psutil.Process]) -> bool:
    return not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in processes)


async def chat(record: MeshRecord) -> inference.GenerateResponse:
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
    async with braid_up(tmp_path, "--no-ar", *STORE) as (first, _):
        left = parts(first)
        first.kill()
        await first.wait()
    async with braid_up(tmp_path, "--no-ar", *STORE) as (second, record):
        await eventually(lambda: all_ended(left))
        assert (await chat(record)).served_by.node_id == "diffusion-1"
        running = parts(second)
        assert len(running) == 4
        os.kill(record.pids.router, signal.SIGKILL)
        await eventually(lambda: len(parts(second)) == 3)
        second.send_signal(signal.SIGTERM)
        output, _ = await asyncio.wait_for(second.communicate(), timeout=60)
        assert second.returncode == 0, output
        assert b"router           ended unasked, signal 9" in output
        assert all_ended(running)
        assert MeshRecord.read(tmp_path) is None


async def test_demo_prints_one_row_a_task() -> None:
    """`braid demo` answers a request of each task, says so in a table and exits 0."""
    process = await asyncio.create_subprocess_exec(
        *BRAID, "demo", *STORE, stdout=PIPE, stderr=STDOUT
    )
    output, _ = await asyncio.wait_for(process.communicate(), timeout=100)
    text = output.decode()
    assert process.returncode == 0, text
    assert all(task_name(asked.request.task) in text for asked in DEMO_REQUESTS)
    assert "FAILED" not in text
