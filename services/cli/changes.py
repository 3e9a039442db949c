"""`braid changes`: who changed what in the configuration, edits by hand included."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated

import grpc
import grpc.aio
import typer
from rich.table import Table
from rich.text import Text

from braid.config.v1 import config_pb2 as config
from braid.config.v1.config_pb2_grpc import ConfigServiceStub
from services.chassis.backoff import Backoff
from services.cli import rpc
from services.cli.addresses import (
    DEFAULT_STATE_DIR,
    AsJson,
    ConfigCenterAddress,
    StateDir,
    locate,
)
from services.cli.failure import one_line
from services.cli.json_output import as_json
from services.cli.screen import screen

_VALUE_WIDTH = 60


def changes(
    after: Annotated[int, typer.Option(min=0, metavar="REVISION", help="Only later ones.")] = 0,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Only the newest so many.")] = 20,
    key: Annotated[str, typer.Option(metavar="PREFIX", help="Only of keys that begin so.")] = "",
    follow: Annotated[bool, typer.Option(help="Go on with new ones until Ctrl-C.")] = False,
    json: AsJson = False,
    config_center: ConfigCenterAddress = None,
    state_dir: StateDir = DEFAULT_STATE_DIR,
) -> None:
    """List changes of the configuration, the newest last; --json: one line each."""
    address = locate("config_center", config_center, state_dir)
    request = config.ListChangesRequest(after_revision=after, limit=limit, key_prefix=key)
    answer = rpc.call(
        address,
        lambda channel: ConfigServiceStub(channel).ListChanges(request, timeout=rpc.TIMEOUT_S),
    )
    if json:
        for change in answer.changes:
            print(as_json(change, indent=None), flush=True)
    else:
        screen().print(change_table(list(answer.changes)))
    if not follow:
        return
    show = _print_json if json else _print_line
    last = max((change.revision for change in answer.changes), default=after)
    rpc.call(address, lambda channel: _follow(channel, last, key, show))


async def _follow(
    channel: grpc.aio.Channel, after: int, prefix: str, show: Callable[[config.Change], None]
) -> None:
    """Shows changes as they come, also past a config center that was away."""
    backoff = Backoff()
    while True:
        request = config.WatchChangesRequest(after_revision=after)
        try:
            async for answer in ConfigServiceStub(channel).WatchChanges(request):
                after = answer.change.revision
                if any(part.key.startswith(prefix) for part in answer.change.keys):
                    show(answer.change)
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.UNAVAILABLE:
                raise
        await asyncio.sleep(backoff.next())


def _print_json(change: config.Change) -> None:
    print(as_json(change, indent=None), flush=True)


def _print_line(change: config.Change) -> None:
    print("  ".join(str(cell) for row in change_rows(change) for cell in row), flush=True)


def change_table(listed: list[config.Change]) -> Table:
    """One row a key of a change."""
    table = Table("revision", "time", "who", "key", "before", "after", "why")
    for change in listed:
        for row in change_rows(change):
            table.add_row(*(Text(cell) for cell in row))
    return table


def change_rows(change: config.Change) -> list[tuple[str, ...]]:
    """A row for each key; a value that is not in force says so."""
    when = change.time.ToDatetime().strftime("%Y-%m-%d %H:%M:%S")
    return [
        (
            str(change.revision),
            when,
            change.who,
            part.key,
            _short(part.before),
            _short(part.after),
            f"REJECTED: {part.rejected}" if part.rejected else one_line(change.reason),
        )
        for part in change.keys
    ]


def _short(value: str) -> str:
    line = " ".join(one_line(value).split())
    return line if len(line) <= _VALUE_WIDTH else line[: _VALUE_WIDTH - 1] + "…"
