"""`braid smoke`: one request through the router to a named node, whatever its weight."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from braid.inference.v1 import inference_pb2 as inference
from braid.routing.v1 import routing_pb2 as routing
from braid.routing.v1.routing_pb2_grpc import RouterServiceStub
from services.cli import rpc
from services.cli.addresses import (
    DEFAULT_STATE_DIR,
    AsJson,
    RouterAdminAddress,
    StateDir,
    locate,
)
from services.cli.answer_line import answer_line
from services.cli.failure import fail
from services.cli.json_output import as_json
from services.cli.names import TaskName, parse_task


def smoke(
    node: Annotated[str, typer.Argument(help="Id of the node; its weight may be 0.")],
    prompt: Annotated[
        str, typer.Option(metavar="TEXT", help="What to ask; else a short greeting.")
    ] = "",
    task: Annotated[
        TaskName | None,
        typer.Option("--task", "-t", parser=parse_task, metavar="TASK", help="What it is for."),
    ] = None,
    timeout: Annotated[float, typer.Option(min=0.001, metavar="SECONDS", help="Deadline.")] = 30.0,
    json: AsJson = False,
    router_admin: RouterAdminAddress = None,
    state_dir: StateDir = DEFAULT_STATE_DIR,
) -> None:
    """Ask one node for an answer, by the way that every call takes."""
    request = smoke_request(node, prompt, task)
    answer = rpc.call(
        locate("router_admin", router_admin, state_dir),
        lambda channel: RouterServiceStub(channel).SmokeTest(request, timeout=timeout),
    )
    if json:
        print(as_json(answer))
    else:
        print(answer.response.text)
        seconds = answer.latency.ToTimedelta().total_seconds()
        print(f"{answer_line(answer.response)}, {seconds:.3f} s by the router", file=sys.stderr)
    served_by = answer.response.served_by.node_id
    if served_by != node:
        fail(f"{served_by or 'nobody named'} answered instead of {node}")


def smoke_request(node: str, prompt: str, task: TaskName | None) -> routing.SmokeTestRequest:
    """The request; the router asks something of its own where there is no prompt."""
    request = routing.SmokeTestRequest(node_id=node)
    if prompt:
        number = task.number if task else inference.TASK_TEXT_GENERATION
        request.request.MergeFrom(inference.GenerateRequest(task=number, prompt=prompt))
    elif task:
        raise typer.BadParameter("needs --prompt", param_hint="--task")
    return request
