"""`braid demo`: a mesh, one request of each task, a table, and the end of the mesh."""

from __future__ import annotations

import asyncio
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import grpc.aio
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from braid.inference.v1 import inference_pb2 as inference
from braid.inference.v1.inference_pb2_grpc import InferenceServiceStub
from services.chassis.channel import open_channel
from services.cli.answer_line import work_done
from services.cli.demo_requests import DEMO_REQUESTS, DemoRequest
from services.cli.failure import EXIT_FAILED, describe, fail, one_line
from services.cli.mesh_failure import MeshFailure
from services.cli.mesh_plan import MeshOptions
from services.cli.mesh_record import MeshRecord
from services.cli.mesh_session import with_mesh
from services.cli.model_store import DEFAULT_STORE
from services.cli.names import paradigm_name, task_name
from services.cli.screen import screen
from services.cli.up import Store

_CALL_S = 60.0
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one request; ``fault`` is empty where all is well."""

    asked: DemoRequest
    response: inference.GenerateResponse
    seconds: float
    fault: str


def demo(store: Store = DEFAULT_STORE) -> None:
    """Start a mesh, send one request of each task, print what happened, stop it."""
    console = screen()
    with tempfile.TemporaryDirectory(prefix="braid-demo-") as folder:
        options = MeshOptions(state_dir=Path(folder), store=store, durable=False)
        try:
            outcomes = asyncio.run(with_mesh(options, console, lambda mesh: ask_all(mesh, console)))
        except MeshFailure as error:
            fail(str(error))
    if outcomes is None or any(outcome.fault for outcome in outcomes):
        raise typer.Exit(EXIT_FAILED)


async def ask_all(mesh: MeshRecord, console: Console) -> list[Outcome]:
    """Sends the requests one after another through the router and prints the table."""
    async with open_channel(mesh.router) as channel:
        stub = InferenceServiceStub(channel)
        outcomes = [await ask(stub, asked) for asked in DEMO_REQUESTS]
    console.print(outcome_table(outcomes))
    return outcomes


async def ask(stub: InferenceServiceStub, asked: DemoRequest) -> Outcome:
    """One request and what became of it."""
    began = time.monotonic()
    try:
        response = await stub.Generate(asked.request, timeout=_CALL_S)
    except grpc.aio.AioRpcError as error:
        fault = describe(error, "the router")
        return Outcome(asked, inference.GenerateResponse(), time.monotonic() - began, fault)
    return Outcome(asked, response, time.monotonic() - began, fault_of(asked, response))


def fault_of(asked: DemoRequest, response: inference.GenerateResponse) -> str:
    """What is wrong with an answer that came; its text is not judged."""
    if response.served_by.paradigm != asked.paradigm:
        return f"expected the paradigm {paradigm_name(asked.paradigm)}"
    return "" if response.text else "the answer is empty"


def outcome_table(outcomes: list[Outcome]) -> Table:
    """One row a request."""
    table = Table("task", "node", "paradigm", "time", "steps", "result")
    for outcome in outcomes:
        response = outcome.response
        table.add_row(
            task_name(outcome.asked.request.task),
            Text(response.served_by.node_id),
            paradigm_name(response.served_by.paradigm),
            f"{outcome.seconds * 1000:.0f} ms",
            work_done(response),
            Text(f"FAILED: {outcome.fault}" if outcome.fault else shown(response.text)),
        )
    return table


def shown(text: str) -> str:
    """``text`` on one line, cut to what a table bears."""
    line = one_line(text)
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"
