"""`braid traffic`: how a model's calls are shared among its versions."""

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
    locate,
)
from services.cli.json_output import as_json
from services.cli.request import parse_pairs
from services.cli.screen import screen
from services.cli.traffic_stats import stats

traffic = typer.Typer(no_args_is_help=True, help="Shares of a model's versions.")

Model = Annotated[str, typer.Argument(help="Name of the model.")]


@traffic.command("get")
def get_traffic(
    model: Model,
    json: AsJson = False,
    config_center: ConfigCenterAddress = None,
    state_dir: StateDir = DEFAULT_STATE_DIR,
) -> None:
    """Show the shares."""
    answer = rpc.call(
        locate("config_center", config_center, state_dir),
        lambda channel: ConfigServiceStub(channel).GetTraffic(
            config.GetTrafficRequest(model=model), timeout=rpc.TIMEOUT_S
        ),
    )
    if json:
        print(as_json(answer))
    elif not answer.shares:
        print(f"{model}: no shares stored; versions share by node weight")
    else:
        screen().print(share_table(dict(answer.shares)))


@traffic.command("set")
def set_traffic(
    model: Model,
    shares: Annotated[list[str], typer.Argument(metavar="VERSION=SHARE...", help="e.g. v1=95")],
    json: AsJson = False,
    config_center: ConfigCenterAddress = None,
    state_dir: StateDir = DEFAULT_STATE_DIR,
) -> None:
    """Replace the shares; a version that is not named gets none."""
    request = config.SetTrafficRequest(model=model, shares=parse_shares(shares))
    answer = rpc.call(
        locate("config_center", config_center, state_dir),
        lambda channel: ConfigServiceStub(channel).SetTraffic(request, timeout=rpc.TIMEOUT_S),
    )
    if json:
        print(as_json(answer))
    else:
        print(f"{model}: shares set at revision {answer.revision}")


traffic.command("stats")(stats)


def parse_shares(pairs: list[str]) -> dict[str, int]:
    """``["v1=95", "v2=5"]`` as a dict. Raises BadParameter."""
    shares = {}
    for version, share in parse_pairs(pairs, "VERSION=SHARE").items():
        if not (share.isascii() and share.isdigit()) or int(share) >= 2**32:
            raise typer.BadParameter(f"{share!r} is not a whole number", param_hint="VERSION=SHARE")
        shares[version] = int(share)
    return shares


def share_table(shares: dict[str, int]) -> Table:
    """One row a version, with its part of all calls."""
    total = sum(shares.values())
    table = Table("version", "share", "of calls")
    for version, share in sorted(shares.items()):
        table.add_row(Text(version), str(share), f"{share / total:.1%}" if total else "")
    return table
