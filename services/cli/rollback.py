"""`braid rollback`: back to the version that last served well."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from braid.config.v1 import config_pb2 as config
from braid.config.v1.config_pb2_grpc import ConfigServiceStub
from services.cli import rpc
from services.cli.addresses import (
    DEFAULT_STATE_DIR,
    AsJson,
    ConfigCenterAddress,
    StateDir,
    Target,
    locate,
)
from services.cli.json_output import as_json
from services.cli.screen import screen

TIMEOUT_S = 600.0
"""Every file of the version is read and hashed before the answer."""


def rollback(
    model: Annotated[str, typer.Argument(help="Name of the model.")],
    version: Annotated[
        str, typer.Argument(help="Version to go back to; else the one that last served well.")
    ] = "",
    dry_run: Annotated[bool, typer.Option(help="Check and compare, change nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="What for.")] = "",
    json: AsJson = False,
    config_center: ConfigCenterAddress = None,
    state_dir: StateDir = DEFAULT_STATE_DIR,
) -> None:
    """Give the traffic back: checks record, files and nodes, shows what changes, asks, switches."""
    target = locate("config_center", config_center, state_dir)
    request = config.RollbackRequest(model=model, version=version, reason=reason)
    if not yes or dry_run:
        request.dry_run = True
        answer = _ask(target, request)
        if not json:
            _show(answer)
        if dry_run:
            if json:
                print(as_json(answer))
            return
        typer.confirm(f"{model}: {answer.from_version} -> {answer.to_version}?", abort=True)
        request.expected_revision, request.version = answer.revision, answer.to_version
        request.dry_run = False
    answer = _ask(target, request)
    if json:
        print(as_json(answer))
    else:
        if yes:
            _show(answer)
        print(f"{model}: {answer.to_version} has the traffic since revision {answer.revision}")


def _ask(target: Target, request: config.RollbackRequest) -> config.RollbackResponse:
    answer: config.RollbackResponse = rpc.call(
        target,
        lambda channel: ConfigServiceStub(channel).Rollback(request, timeout=TIMEOUT_S),
    )
    return answer


def _show(answer: config.RollbackResponse) -> None:
    screen().print(difference_table(answer))


def difference_table(answer: config.RollbackResponse) -> Table:
    """One row a difference."""
    table = Table("what", answer.from_version, answer.to_version)
    for it in answer.differences:
        table.add_row(Text(it.path), Text(it.before), Text(it.after))
    return table
