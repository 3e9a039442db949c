"""`braid up`: a whole mesh on this machine, until Ctrl-C."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from services.cli.addresses import DEFAULT_STATE_DIR, StateDir
from services.cli.failure import fail
from services.cli.mesh_failure import MeshFailure
from services.cli.mesh_plan import GROUPS, MeshOptions
from services.cli.mesh_record import FILE_NAME, MeshRecord
from services.cli.mesh_session import with_mesh
from services.cli.model_store import DEFAULT_STORE
from services.cli.request import parse_pairs
from services.cli.screen import screen

_MOST_NODES = 64

Store = Annotated[
    Path, typer.Option("--store", file_okay=False, help="Model versions: STORE/MODEL/VERSION/.")
]


def up(
    state_dir: StateDir = DEFAULT_STATE_DIR,
    port_base: Annotated[
        int | None,
        typer.Option(
            min=1024, max=65535, metavar="N", help="First of consecutive ports; else free ones."
        ),
    ] = None,
    no_diffusion: Annotated[
        bool, typer.Option("--no-diffusion", help="Start no diffusion worker.")
    ] = False,
    no_ar: Annotated[bool, typer.Option("--no-ar", help="Start no autoregressive worker.")] = False,
    nodes: Annotated[
        list[str] | None,
        typer.Option(metavar="GROUP=N", help="Workers in group diffusion or ar; else 1."),
    ] = None,
    store: Store = DEFAULT_STORE,
) -> None:
    """Start a mesh: etcd, config center, router and workers; Ctrl-C stops it.

    Once everything is ready, mesh.json in the state directory tells the
    addresses.
    """
    absent = [group for group, gone in (("diffusion", no_diffusion), ("ar", no_ar)) if gone]
    counts = node_counts(nodes or [], absent)
    options = MeshOptions(state_dir=state_dir, store=store, nodes=counts, port_base=port_base)
    console = screen()

    async def announce_and_wait(record: MeshRecord) -> None:
        print(announcement(record, state_dir), flush=True)
        await asyncio.Event().wait()

    try:
        asyncio.run(with_mesh(options, console, announce_and_wait))
    except MeshFailure as error:
        fail(str(error))


def node_counts(pairs: list[str], absent: list[str]) -> dict[str, int]:
    """Workers by group, one unless said otherwise. Raises BadParameter."""
    counts = dict.fromkeys(GROUPS, 1)
    for group, count in parse_pairs(pairs, "--nodes").items():
        if group not in GROUPS:
            known = ", ".join(GROUPS)
            raise typer.BadParameter(f"{group!r} is none of {known}", param_hint="--nodes")
        if not (count.isascii() and count.isdigit()) or int(count) > _MOST_NODES:
            fault = f"{count!r} is not a number up to {_MOST_NODES}"
            raise typer.BadParameter(fault, param_hint="--nodes")
        counts[group] = int(count)
    return counts | dict.fromkeys(absent, 0)


def announcement(record: MeshRecord, state_dir: Path) -> str:
    """What an operator needs first."""
    return "\n".join(
        [
            "",
            f"The mesh is ready: router {record.router}, config center {record.config_center}, "
            f"etcd {record.etcd}",
            f"All addresses are in {state_dir / FILE_NAME}, logs in {state_dir / 'logs'}.",
            "Ctrl-C stops it.",
        ]
    )
