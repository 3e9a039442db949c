"""Where the parts of the mesh are: from options, BRAID_* variables or mesh.json."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from services.cli.failure import fail
from services.cli.mesh_record import FILE_NAME, BadMeshRecord, MeshRecord

DEFAULT_STATE_DIR = Path(".braid")

StateDir = Annotated[
    Path,
    typer.Option(
        "--state-dir",
        envvar="BRAID_STATE_DIR",
        file_okay=False,
        help="Folder where `braid up` keeps its mesh; mesh.json in it tells the addresses.",
    ),
]
RouterAddress = Annotated[
    str | None,
    typer.Option("--router", envvar="BRAID_ROUTER", metavar="HOST:PORT", help="The router."),
]
RouterAdminAddress = Annotated[
    str | None,
    typer.Option(
        "--router-admin",
        envvar="BRAID_ROUTER_ADMIN",
        metavar="HOST:PORT",
        help="The router's admin port.",
    ),
]
ConfigCenterAddress = Annotated[
    str | None,
    typer.Option(
        "--config-center",
        envvar="BRAID_CONFIG_CENTER",
        metavar="HOST:PORT",
        help="The config center.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


@dataclass(frozen=True, slots=True)
class Target:
    """Where a command calls, and the key that goes with it where the mesh tells one."""

    address: str
    api_key: str | None = None


def locate(part: str, given: str | None, state_dir: Path) -> Target:
    """Address of ``part``, a field of MeshRecord such as ``router_admin``.

    Ends the command where none was given and no mesh is recorded.
    """
    if given:
        return Target(given)
    try:
        record = MeshRecord.read(state_dir)
    except BadMeshRecord as error:
        fail(str(error))
    if record is None:
        option = part.replace("_", "-")
        fail(
            f"no mesh in {state_dir / FILE_NAME}: start one with `braid up`, "
            f"or give --{option} or BRAID_{part.upper()}"
        )
    return Target(str(getattr(record, part)), record.api_key)
