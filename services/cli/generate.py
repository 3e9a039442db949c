"""`braid generate`: one request, through the router."""

from __future__ import annotations

import sys
from typing import Annotated

import grpc.aio
import typer
from rich.console import Console

from braid.inference.v1 import inference_pb2 as inference
from braid.inference.v1.inference_pb2_grpc import InferenceServiceStub
from services.cli import rpc
from services.cli.addresses import (
    DEFAULT_STATE_DIR,
    AsJson,
    RouterAddress,
    StateDir,
    locate,
)
from services.cli.answer_line import answer_line
from services.cli.json_output import as_json
from services.cli.request import build_request
from services.cli.request_options import RequestOptions, takes_request
from services.cli.stdin import read_stdin
from services.cli.streamed_text import StreamedText


@takes_request
def generate(
    options: RequestOptions,
    stream: Annotated[bool, typer.Option("--stream", help="Print text as it is final.")] = False,
    drafts: Annotated[
        bool, typer.Option("--drafts", help="Diffusion, with --stream: show blocks as they form.")
    ] = False,
    timeout: Annotated[float, typer.Option(min=0.001, metavar="SECONDS", help="Deadline.")] = 120.0,
    json: AsJson = False,
    router: RouterAddress = None,
    state_dir: StateDir = DEFAULT_STATE_DIR,
) -> None:
    """Generate text.

    The text goes to standard output, a line about who made it and how to
    standard error.
    """
    if drafts and not stream:
        raise typer.BadParameter("needs --stream", param_hint="--drafts")
    request = build_request(options, read_stdin)
    if drafts:
        request.diffusion.drafts = True
    printer = _print_json if json else _print_text

    async def whole(channel: grpc.aio.Channel) -> None:
        response = await InferenceServiceStub(channel).Generate(request, timeout=timeout)
        printer(response)

    async def streamed(channel: grpc.aio.Channel) -> None:
        show = _print_json_line if json else _streamed_text().show
        async for event in InferenceServiceStub(channel).GenerateStream(request, timeout=timeout):
            show(event)

    rpc.call(locate("router", router, state_dir), streamed if stream else whole)


def _print_text(response: inference.GenerateResponse) -> None:
    if response.thinking:
        print(f"[thinking] {response.thinking}", file=sys.stderr)
    print(response.text)
    print(answer_line(response), file=sys.stderr)


def _print_json(response: inference.GenerateResponse) -> None:
    print(as_json(response))


def _print_json_line(event: inference.GenerateStreamResponse) -> None:
    print(as_json(event, indent=None), flush=True)


def _streamed_text() -> StreamedText:
    console = Console()
    return StreamedText(sys.stdout, sys.stderr, console.width if console.is_terminal else None)
