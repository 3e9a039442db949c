"""The commands against a real mesh."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from services.cli.app import app
from services.cli.model_store import DEFAULT_STORE
from tests.e2e.running_mesh import RunningMesh


class Braid:
    """The `braid` command, pointed at the mesh."""

    def __init__(self, state_dir: Path) -> None:
        self._state_dir = state_dir
        self._runner = CliRunner()

    def __call__(self, *arguments: str, stdin: str | None = None, code: int = 0) -> str:
        """Standard output, or everything where the command is to fail."""
        result = self._runner.invoke(
            app, [*arguments, "--state-dir", str(self._state_dir)], input=stdin
        )
        assert result.exit_code == code, result.output
        return result.output if code else result.stdout

    def json(self, *arguments: str) -> dict[str, Any]:
        """The answer of a command that prints JSON."""
        answer: dict[str, Any] = json.loads(self(*arguments, "--json"))
        return answer


@pytest.fixture
def braid(mesh: RunningMesh) -> Braid:
    """The command."""
    return Braid(mesh.state_dir)


def test_generate_prints_the_text_alone(braid: Braid) -> None:
    """Standard output holds the answer and nothing else."""
    text = braid.json("generate", "-t", "math", "Start with 7, add 14. What do you get?")["text"]
    output = braid("generate", "-t", "math", "Start with 7, add 14. What do you get?")
    assert output == f"{text}\n"


def test_smoke_asks_one_node(braid: Braid) -> None:
    """A named node answers, a name that nobody has is an error."""
    answer = braid.json("smoke", "diffusion-1")
    assert answer["response"]["served_by"]["node_id"] == "diffusion-1"
    assert braid("smoke", "ar-1", "--prompt", "Hello!", "-t", "chat").strip()
    assert "NOT_FOUND" in braid("smoke", "nobody", code=1)


def test_traffic_stats_count_calls(braid: Braid) -> None:
    """The calls that were just made are counted under their version."""
    braid("generate", "-t", "math", "Start with 7, add 14. What do you get?")
    shown = braid.json("traffic", "stats", "demo-ar")["versions"]
    counts = {version["version"]: int(version["count"]) for version in shown}
    assert counts["v1"] > 0
    assert "demo-ar v1" in braid("traffic", "stats", "demo-ar")


def test_generate_reads_standard_input(braid: Braid) -> None:
    """A prompt may be piped in."""
    assert braid("generate", "-t", "chat", stdin="Hello!\n").strip()


def test_generate_streams_the_same_text(braid: Braid) -> None:
    """--stream prints what the unary call prints."""
    request = (
        "generate",
        "--edit-text",
        "We meet in Oslo.",
        "--instruction",
        "Use Rome instead of Oslo.",
    )
    assert braid(*request, "--stream") == braid(*request)


def test_generate_shows_drafts_beside_the_text(braid: Braid) -> None:
    """--drafts changes nothing on standard output, and needs a stream."""
    request = ("generate", "-t", "structured-output", "Extract name as JSON: I am Ben.", "--stream")
    assert braid(*request, "--drafts") == braid(*request)
    assert "needs --stream" in braid(*request[:-1], "--drafts", code=2)


def test_generate_streams_json_lines(braid: Braid) -> None:
    """With --json each event of a stream is a line."""
    output = braid("generate", "-t", "chat", "Hello!", "--stream", "--json")
    events = [json.loads(line) for line in output.splitlines()]
    assert "finished" in events[-1]


def test_generate_infill(braid: Braid) -> None:
    """Prefix and suffix make an infill, which goes to diffusion."""
    answer = braid.json("generate", "--prefix", "def f(a, b):\n    return ", "--suffix", "\n")
    assert answer["served_by"]["paradigm"] == "PARADIGM_DIFFUSION"


def test_generate_with_a_schema(braid: Braid, tmp_path: Path) -> None:
    """A schema from a file is met by the answer."""
    schema = tmp_path / "schema.json"
    kinds = {"name": {"type": "string"}, "age": {"type": "integer"}}
    schema.write_text(json.dumps({"properties": kinds, "required": ["name", "age"]}))
    prompt = "Extract name, age as JSON: This is Anna Berg. Anna is 41 years old."
    output = braid("generate", "-t", "structured-output", prompt, "--schema", str(schema))
    assert {"name", "age"} <= json.loads(output).keys()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["-t", "chat", ""], "INVALID_REQUEST"),
        (["no task and no signal"], "INVALID_REQUEST"),
        (["-t", "chat", "x", "--model", "no-such-model"], "UNKNOWN_MODEL"),
        (["-t", "chat", "x", "--max-new-tokens", "1000000"], "LIMIT_EXCEEDED"),
        (["-t", "chat", "x", "--temperature", "3"], "INVALID_REQUEST"),
        (["-t", "structured-output", "x", "--schema", '{"type": "strnig"}'], "INVALID_REQUEST"),
        (["-t", "reasoning", "x", "--max-steps", "3"], "UNSUPPORTED_PARAMETER"),
    ],
)
def test_refusal_is_one_clear_line(braid: Braid, arguments: list[str], reason: str) -> None:
    """What the mesh refuses ends with exit code 1 and one line that begins with the reason."""
    output = braid("generate", *arguments, code=1)
    assert output.startswith(f"braid: {reason}: ")
    assert output.count("\n") == 1


def test_nodes_lists_the_mesh(braid: Braid) -> None:
    """Every node has its row."""
    output = braid("nodes")
    assert all(node_id in output for node_id in ("diffusion-1", "diffusion-2", "ar-1"))
    assert len(braid.json("nodes")["nodes"]) >= 3


def test_explain_names_rule_and_node(braid: Braid) -> None:
    """A dry run says which rule matched and which node would get the call."""
    answer = braid.json("explain", "-t", "math", "1+1")
    assert (answer["rule"], answer["group"]) == ("reasoning", "ar")
    assert "reasoning" in braid("explain", "-t", "math", "1+1")


def test_traffic_is_set_and_shown(braid: Braid, mesh: RunningMesh) -> None:
    """Shares that are set are what get shows and what etcd holds."""
    braid("traffic", "set", "demo-diffusion", "v1=95")
    assert braid.json("traffic", "get", "demo-diffusion")["shares"] == {"v1": 95}
    assert "95" in mesh.etcdctl("get", "/braid/traffic/demo-diffusion")
    assert "100.0%" in braid("traffic", "get", "demo-diffusion")
    mesh.etcdctl("del", "/braid/traffic/demo-diffusion")
    assert "no shares stored" in braid("traffic", "get", "demo-diffusion")


def test_traffic_of_an_unknown_version_is_refused(braid: Braid) -> None:
    """A share for a version that is not recorded is refused in one line."""
    assert "shares" in braid("traffic", "set", "demo-ar", "v77=1", code=1)


def test_models_are_listed_and_shown(braid: Braid) -> None:
    """A record shows its files with their hashes."""
    assert "demo-diffusion" in braid("models", "list")
    record = braid.json("models", "show", "demo-ar", "v1")["model_version"]
    weights = next(file for file in record["files"] if file["path"] == "model.safetensors")
    assert len(weights["sha256"]) == 64
    assert weights["sha256"] in braid("models", "show", "demo-ar", "v1")


def test_model_is_registered_once(braid: Braid) -> None:
    """A version can be recorded from a folder, and never changed."""
    folder = str(DEFAULT_STORE / "demo-ar" / "v1")
    braid("models", "register", "another", "v1", folder)
    assert "another" in braid("models", "list", "another")
    assert "ALREADY_EXISTS" in braid("models", "register", "another", "v1", folder, code=1)
    assert "NOT_FOUND" in braid("models", "show", "another", "v2", code=1)
