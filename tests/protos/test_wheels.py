"""What the two wheels hold."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def _build(project: Path, output: Path) -> zipfile.ZipFile:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    command += ["--no-build-isolation", "--wheel-dir", str(output), str(project)]
    subprocess.run(command, check=True, capture_output=True)
    [wheel] = output.glob("*.whl")
    return zipfile.ZipFile(wheel)


def _requirements(wheel: zipfile.ZipFile) -> set[str]:
    [metadata] = [name for name in wheel.namelist() if name.endswith("METADATA")]
    lines = Parser().parsestr(wheel.read(metadata).decode()).get_all("Requires-Dist") or []
    return {line.split(">")[0].split("<")[0].strip() for line in lines}


def test_stub_wheel_is_slim(tmp_path: Path) -> None:
    """The stubs alone need grpcio and protobuf, and hold nothing but the contract."""
    copy = shutil.copytree(ROOT / "protos", tmp_path / "protos")
    with _build(copy, tmp_path / "out") as wheel:
        assert _requirements(wheel) == {"grpcio", "protobuf"}
        top = {name.split("/")[0] for name in wheel.namelist() if ".dist-info" not in name}
        assert top == {"braid"}
        assert "braid/inference/v1/inference_pb2_grpc.py" in wheel.namelist()
        assert "braid/inference/v1/inference.proto" in wheel.namelist()


@pytest.mark.parametrize(
    "member",
    ["services/chassis/server.py", "services/cli/__init__.py", "braid/worker/v1/worker_pb2.py"],
)
def test_project_wheel_holds_both_source_roots(project_wheel: zipfile.ZipFile, member: str) -> None:
    """An installed wheel imports services and braid just as a checkout does."""
    assert member in project_wheel.namelist()


@pytest.fixture(scope="module")
def project_wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The project's own wheel, built from a copy without the demo models."""
    copy = tmp_path_factory.mktemp("project")
    for name in ("services", "protos"):
        shutil.copytree(ROOT / name, copy / name)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy / name)
    return _build(copy, copy / "out")
