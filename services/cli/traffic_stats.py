"""`braid traffic stats`: what became of the latest calls, by version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer
from google.protobuf.duration_pb2 import Duration
from rich.table import Table
from rich.text import Text

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
from services.cli.json_output import as_json
from services.cli.screen import screen


def stats(
    model: Annotated[str, typer.Argument(help="Name of a model; else all.")] = "",
    window: Annotated[
        int, typer.Option(min=1, max=600, metavar="SECONDS", help="How far back.")
    ] = 300,
    json: AsJson = False,
    router_admin: RouterAdminAddress = None,
    state_dir: StateDir = DEFAULT_STATE_DIR,
) -> None:
    """Show errors, latency and validity of the latest calls, by version."""
    request = routing.GetTrafficRequest(model=model, window=Duration(seconds=window))
    answer = rpc.call(
        locate("router_admin", router_admin, state_dir),
        lambda channel: RouterServiceStub(channel).GetTraffic(request, timeout=rpc.TIMEOUT_S),
    )
    if json:
        print(as_json(answer))
        return
    screen().print(version_table(answer))
    if answer.mirrors:
        screen().print(mirror_table(answer))


def version_table(answer: routing.GetTrafficResponse) -> Table:
    """One row a version."""
    table = Table("model", "calls", "errors", "p50", "p95", "p99", "valid")
    for version in answer.versions:
        table.add_row(
            Text(f"{version.model} {version.version}"),
            str(version.count),
            Text(_errors(version.errors)),
            *(_seconds(it) for it in (version.p50, version.p95, version.p99)),
            f"{version.valid_share:.1%} of {version.judged}" if version.judged else "",
        )
    return table


def mirror_table(answer: routing.GetTrafficResponse) -> Table:
    """Two rows a comparison: the calls, and their copies."""
    table = Table("compared", "calls", "errors", "valid", "tokens", "p50", "p95")
    for mirror in answer.mirrors:
        for side, where in ((mirror.original, ""), (mirror.copy, f" in {mirror.group}, a copy")):
            table.add_row(
                Text(f"{side.model} {side.version}{where}"),
                str(mirror.count),
                Text(_errors(side.errors)),
                f"{side.valid_share:.1%}",
                f"{side.mean_tokens:.1f}",
                _seconds(side.p50),
                _seconds(side.p95),
            )
    return table


def _errors(errors: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {code}" for code, count in sorted(errors.items()))


def _seconds(duration: Duration) -> str:
    return f"{duration.ToTimedelta().total_seconds():.3f} s"
