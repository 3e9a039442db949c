"""`braid bench` and `braid eval`: the measurements that come with a clone of the repository."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from services.cli.failure import fail
from services.cli.model_store import DEFAULT_STORE
from services.cli.up import Store

REPOSITORY = Path(__file__).parents[2]


def bench(
    names: Annotated[
        list[str] | None, typer.Argument(help="Which: engine, router, ...; all if none is named.")
    ] = None,
) -> None:
    """Print speeds as ratios of things measured side by side."""
    _run("tests.benchmarks", *(names or []))


def evaluate(
    suite: Annotated[
        str, typer.Option(metavar="PARADIGM", help="diffusion, autoregressive or all.")
    ] = "all",
    holdout: Annotated[
        bool, typer.Option("--holdout", help="The sets that nothing was chosen by.")
    ] = False,
    store: Store = DEFAULT_STORE,
) -> None:
    """Score the models of a store on the golden sets, as a mesh serves them."""
    if suite not in ("all", "diffusion", "autoregressive"):
        raise typer.BadParameter("must be diffusion, autoregressive or all", param_hint="--suite")
    chosen = ["--holdout"] if holdout else []
    _run("deploy.models", "served", "--suite", suite, "--store", str(store), *chosen)


def _run(module: str, *arguments: str) -> None:
    """Runs a module of the repository in a process of its own and ends with its exit code."""
    if not (REPOSITORY / module.replace(".", "/")).is_dir():
        fail("this needs a clone of the repository: the installed package has no measurements")
    done = subprocess.run([sys.executable, "-m", module, *arguments], cwd=REPOSITORY)
    raise typer.Exit(done.returncode)
