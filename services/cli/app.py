"""The `braid` command: each noun has a file of its own, this one only lists them."""

from __future__ import annotations

from typing import Annotated

import typer

from services import __version__
from services.cli.batch import batch
from services.cli.callers import callers
from services.cli.changes import changes
from services.cli.demo import demo
from services.cli.explain import explain
from services.cli.generate import generate
from services.cli.measure import bench, evaluate
from services.cli.models import models
from services.cli.nodes import nodes
from services.cli.rollback import rollback
from services.cli.rollout import rollout
from services.cli.smoke import smoke
from services.cli.traffic import traffic
from services.cli.up import up

app = typer.Typer(
    name="braid",
    help="Diffusion and autoregressive language models, served as one mesh.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (up, demo, generate, batch, nodes, explain, smoke, rollback, changes, bench):
    app.command()(command)
app.command("eval")(evaluate)
app.add_typer(traffic, name="traffic")
app.add_typer(models, name="models")
app.add_typer(rollout, name="rollout")
app.add_typer(callers, name="callers")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"braid {__version__}")
        raise typer.Exit


@app.callback()
def root(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print it."),
    ] = False,
) -> None:
    """Diffusion and autoregressive language models, served as one mesh."""


def main() -> None:
    """Entry point of the `braid` script."""
    app()
