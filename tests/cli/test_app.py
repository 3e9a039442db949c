"""The command's surface: help, exit codes, where addresses come from."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from typer.testing import CliRunner

from services.cli.app import app
from services.cli.state_dir import StateDir

COMMANDS = (
    "up",
    "demo",
    "generate",
    "nodes",
    "explain",
    "smoke",
    "traffic",
    "models",
    "callers",
    "changes",
    "rollout",
    "rollback",
    "bench",
    "eval",
)


def braid(*arguments: str) -> tuple[int, str]:
    """Exit code and all output of one command."""
    result = CliRunner().invoke(app, arguments)
    return result.exit_code, result.output


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str) -> None:
    """--help of each command works and names it."""
    code, output = braid(command, "--help")
    assert code == 0
    assert f"braid {command}" in output.replace("root", "braid")


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["generate", "--task", "poetry", "x"],
        ["generate", "--max-new-tokens", "-1", "x"],
        ["generate", "--seed", "9223372036854775808", "x"],
        ["generate", "a", "b"],
        ["explain", "--prefix", "a", "b"],
        ["traffic", "set", "m", "v1"],
        ["traffic", "set", "m", "v1=many"],
        ["traffic", "set", "m", "v1=-1"],
        ["traffic", "set", "m", "v1=1", "v1=2"],
        ["rollout", "start", "m", "v1", "--steps", "0,100"],
        ["models", "register", "m", "v1", "f", "--parent", "base"],
        ["up", "--nodes", "gpu=1"],
        ["up", "--nodes", "ar=-1"],
        ["up", "--nodes", "ar"],
        ["up", "--port-base", "80"],
        ["eval", "--suite", "poetry"],
    ],
)
def test_wrong_use_exits_2(arguments: list[str]) -> None:
    """Wrong use ends with exit code 2 and an explanation, whatever the mesh does."""
    code, output = braid(*arguments)
    assert code == 2
    assert "Error" in output


def test_unknown_benchmark_names_those_there_are(capfd: pytest.CaptureFixture[str]) -> None:
    """A benchmark that is not there ends with exit code 2 and the list."""
    code, _ = braid("bench", "nonsense")
    assert code == 2
    assert "engine" in capfd.readouterr().err


@pytest.mark.parametrize("command", [["generate", "x"], ["nodes"], ["traffic", "get", "m"]])
def test_no_mesh_exits_1(tmp_path: Path, command: list[str]) -> None:
    """Without a mesh the line says where it was looked for."""
    code, output = braid(*command, "--state-dir", str(tmp_path))
    assert code == 1
    assert "mesh.json" in output
    assert output.count("\n") == 1


def test_address_of_nobody_exits_1() -> None:
    """An address where nothing listens is named in one line."""
    code, output = braid("nodes", "--router-admin", "127.0.0.1:1")
    assert code == 1
    assert output.startswith("braid: 127.0.0.1:1 does not answer")


def test_store_without_models_exits_1(tmp_path: Path) -> None:
    """A mesh without models does not start, and nothing is left in the way of the next."""
    state, store = tmp_path / "state", tmp_path / "none"
    code, output = braid("up", "--state-dir", str(state), "--store", str(store))
    assert code == 1
    assert output.startswith("braid: no model versions in")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with the card of one version: enough to get as far as starting parts."""
    version = tmp_path / "store" / "model" / "v1"
    version.mkdir(parents=True)
    (version / "braid.json").write_text("{}")
    return tmp_path / "store"


def test_mesh_on_a_port_in_use_exits_1(tmp_path: Path, store: Path) -> None:
    """A port of the mesh that somebody has is named, and nothing is started."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = str(listener.getsockname()[1])
        code, output = braid(
            "up", "--state-dir", str(tmp_path), "--store", str(store), "--port-base", port
        )
    assert code == 1
    assert output.startswith(f"braid: port {port} is in use")


def test_second_mesh_in_a_folder_exits_1(tmp_path: Path, store: Path) -> None:
    """A state directory that a mesh runs in is refused, and its record stays."""
    with StateDir(tmp_path).held():
        (tmp_path / "mesh.json").write_text("{}")
        code, output = braid("up", "--state-dir", str(tmp_path), "--store", str(store))
    assert code == 1
    assert output.startswith("braid: another mesh runs in")
    assert (tmp_path / "mesh.json").exists()


def test_store_that_is_refused_exits_1(tmp_path: Path, store: Path) -> None:
    """What the config center says of a bad version ends the start; no process stays."""
    before = psutil.Process().children()
    code, output = braid("up", "--state-dir", str(tmp_path), "--store", str(store))
    assert code == 1
    assert "INVALID_REQUEST: uri: braid.json" in output
    assert psutil.Process().children() == before


def test_command_line_needs_no_torch() -> None:
    """The command starts without the heavy libraries of the workers."""
    check = (
        "import sys, services.cli.app;"
        "sys.exit(bool({'torch', 'transformers'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
