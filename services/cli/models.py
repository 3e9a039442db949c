"""`braid models`: the recorded versions of models."""

from __future__ import annotations

from pathlib import Path
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
from services.cli.names import paradigm_name
from services.cli.screen import screen

models = typer.Typer(no_args_is_help=True, help="Recorded model versions.")

Model = Annotated[str, typer.Argument(help="Name of the model.")]
Version = Annotated[str, typer.Argument(help="Version of the model.")]

REGISTER_TIMEOUT_S = 600.0
"""Every file is read and hashed before the answer."""


@models.command("list")
def list_models(
    model: Annotated[str, typer.Argument(help="Only this model's versions.")] = "",
    json: AsJson = False,
    config_center: ConfigCenterAddress = None,
    state_dir: StateDir = DEFAULT_STATE_DIR,
) -> None:
    """List the versions."""
    answer = rpc.call(
        locate("config_center", config_center, state_dir),
        lambda channel: ConfigServiceStub(channel).ListModels(
            config.ListModelsRequest(model=model), timeout=rpc.TIMEOUT_S
        ),
    )
    if json:
        print(as_json(answer))
    else:
        screen().print(version_table(list(answer.model_versions)))


@models.command("show")
def show_model(
    model: Model,
    version: Version,
    json: AsJson = False,
    config_center: ConfigCenterAddress = None,
    state_dir: StateDir = DEFAULT_STATE_DIR,
) -> None:
    """Show one version's record, files and hashes included."""
    answer = rpc.call(
        locate("config_center", config_center, state_dir),
        lambda channel: ConfigServiceStub(channel).GetModel(
            config.GetModelRequest(model=model, version=version), timeout=rpc.TIMEOUT_S
        ),
    )
    if json:
        print(as_json(answer))
        return
    console = screen()
    console.print(version_table([answer.model_version]))
    console.print(Text(f"files at {answer.model_version.uri}"))
    console.print(file_table(answer.model_version))


@models.command("register")
def register_model(
    model: Model,
    version: Version,
    source: Annotated[str, typer.Argument(metavar="FOLDER|URI", help="Where its files are.")],
    parent: Annotated[
        list[str] | None,
        typer.Option(metavar="RELATION=MODEL/VERSION", help="What it was made from."),
    ] = None,
    json: AsJson = False,
    config_center: ConfigCenterAddress = None,
    state_dir: StateDir = DEFAULT_STATE_DIR,
) -> None:
    """Record a new version, for good: it can never be changed."""
    request = config.RegisterModelRequest(
        model=model,
        version=version,
        uri=uri_of(source),
        parents=[parse_parent(text) for text in parent or []],
    )
    answer = rpc.call(
        locate("config_center", config_center, state_dir),
        lambda channel: ConfigServiceStub(channel).RegisterModel(
            request, timeout=REGISTER_TIMEOUT_S
        ),
    )
    if json:
        print(as_json(answer))
    else:
        print(f"{model} {version}: recorded at revision {answer.revision}")


@models.command("retire")
def retire_model(
    model: Model,
    version: Version,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="What for.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    json: AsJson = False,
    config_center: ConfigCenterAddress = None,
    state_dir: StateDir = DEFAULT_STATE_DIR,
) -> None:
    """Take a version out of the registry, for good; refused while it is in use."""
    target = locate("config_center", config_center, state_dir)
    if not yes:
        typer.confirm(f"retire {model} {version}? Its name is not used again", abort=True)
    request = config.RetireModelRequest(model=model, version=version, reason=reason)
    answer = rpc.call(
        target,
        lambda channel: ConfigServiceStub(channel).RetireModel(request, timeout=rpc.TIMEOUT_S),
    )
    print(as_json(answer) if json else f"{model} {version}: retired at revision {answer.revision}")


def parse_parent(text: str) -> config.ModelParent:
    """``"base=demo/v1"`` as a parent. Raises BadParameter."""
    relation, _, name = text.partition("=")
    model, _, version = name.partition("/")
    if not (relation and model and version):
        raise typer.BadParameter(f"{text!r} is not RELATION=MODEL/VERSION", param_hint="--parent")
    return config.ModelParent(model=model, version=version, relation=relation)


def uri_of(source: str) -> str:
    """``source`` as it is if it is a URI, else the file:// URI of that folder."""
    return source if "://" in source else Path(source).absolute().as_uri()


def version_table(versions: list[config.ModelVersion]) -> Table:
    """One row a version."""
    table = Table("model", "version", "paradigm", "family", "parameters", "context", "size")
    for version in versions:
        size = sum(file.size_bytes for file in version.files)
        table.add_row(
            Text(version.model),
            Text(version.version),
            paradigm_name(version.paradigm),
            Text(version.family),
            f"{version.parameters_total / 1e6:.1f} M",
            str(version.max_context),
            f"{size / 1e6:.1f} MB",
        )
    return table


def file_table(version: config.ModelVersion) -> Table:
    """One row a file."""
    table = Table("file", "bytes", "sha256")
    for file in version.files:
        table.add_row(Text(file.path), str(file.size_bytes), file.sha256)
    return table
