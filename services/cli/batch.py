"""`braid batch`: a file of requests, answered offline; can be broken off and gone on with."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Annotated, TextIO

import grpc.aio
import typer
from google.protobuf import json_format

from braid.inference.v1 import inference_pb2 as inference
from braid.inference.v1.inference_pb2_grpc import InferenceServiceStub
from services.cli import rpc
from services.cli.addresses import DEFAULT_STATE_DIR, RouterAddress, StateDir, locate
from services.cli.failure import fail
from services.cli.json_output import as_json

EXIT_SOME_FAILED = 3


def batch(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE.jsonl",
            exists=True,
            dir_okay=False,
            help='Lines of {"item_id": "...", "request": {...}}, fields as in GenerateRequest.',
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", dir_okay=False, help="Outcomes. Default: FILE.results.jsonl."),
    ] = None,
    router: RouterAddress = None,
    state_dir: StateDir = DEFAULT_STATE_DIR,
) -> None:
    """Answer a file of requests at the lowest priority.

    Each outcome is written as soon as there is one. Called again, it sends only the
    items that have no answer yet. Exit code 3: some items failed.
    """
    results = output or file.with_suffix(".results.jsonl")
    done = answered(results)
    counts = {"response": 0, "error": 0}

    async def run(channel: grpc.aio.Channel) -> None:
        welcome = asyncio.Event()
        with _continued(results) as out:
            items = _to_send(file, done, welcome)
            async for outcome in InferenceServiceStub(channel).GenerateBatch(items):
                print(as_json(outcome, indent=None), file=out, flush=True)
                counts[outcome.WhichOneof("outcome") or "error"] += 1
                welcome.set()

    rpc.call(locate("router", router, state_dir), run)
    good, bad = counts["response"], counts["error"]
    print(f"{good} answered, {bad} failed, {len(done)} were there already: {results}")
    if bad:
        raise typer.Exit(EXIT_SOME_FAILED)


def read_items(file: Path) -> Iterator[inference.GenerateBatchRequest]:
    """The items of a file. Ends the command at a line that is none."""
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    yield json_format.Parse(line, inference.GenerateBatchRequest())
                except json_format.ParseError as error:
                    fail(f"{file}:{number}: {error}")


def answered(results: Path) -> frozenset[str]:
    """Ids that have an answer already; what failed is tried again."""
    if not results.exists():
        return frozenset()
    with results.open(encoding="utf-8") as lines:
        good = (outcome for outcome in map(_outcome, lines) if "response" in outcome)
        return frozenset(str(outcome.get("item_id")) for outcome in good)


def _outcome(line: str) -> dict[str, object]:
    """One line of outcomes; empty for one that was broken off."""
    try:
        outcome = json.loads(line)
    except ValueError:
        return {}
    return outcome if isinstance(outcome, dict) else {}


def _continued(results: Path) -> TextIO:
    """The file to add to, at the start of a line."""
    torn = results.exists() and results.read_bytes()[-1:] not in (b"", b"\n")
    out = results.open("a", encoding="utf-8")
    if torn:
        print(file=out)
    return out


async def _to_send(
    file: Path, done: frozenset[str], welcome: asyncio.Event
) -> AsyncIterator[inference.GenerateBatchRequest]:
    """The first item alone: grpc.aio hides why a stream was refused from who is still sending."""
    for item in read_items(file):
        if item.item_id not in done:
            yield item
            await welcome.wait()
