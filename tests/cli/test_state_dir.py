"""The state directory belongs to one mesh at a time."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from services.cli.mesh_failure import StateDirBusy
from services.cli.mesh_record import MeshRecord, Pids
from services.cli.state_dir import StateDir, leftovers

ABSENT = 2**22 - 1
"""A process id that is not in use."""


def record(etcd_pid: int) -> MeshRecord:
    return MeshRecord(
        etcd="e",
        router="r",
        router_admin="a",
        router_ops="o",
        config_center="c",
        nodes=(),
        pids=Pids(etcd=etcd_pid, router=ABSENT, config_center=ABSENT),
    )


@pytest.fixture
def part() -> Iterator[psutil.Process]:
    """A process that looks like a part of a mesh."""
    sleep = "import time; print('up', flush=True); time.sleep(60)  # services.router.main"
    with subprocess.Popen([sys.executable, "-c", sleep], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()  # a process that has only just begun has no command line yet
        yield psutil.Process(process.pid)
        process.kill()


def test_second_mesh_is_refused(tmp_path: Path) -> None:
    """Two meshes never share a folder."""
    with (
        StateDir(tmp_path).held(),
        pytest.raises(StateDirBusy, match=str(tmp_path)),
        StateDir(tmp_path).held(),
    ):
        pass


def test_folder_is_free_again(tmp_path: Path) -> None:
    """The next mesh may have the folder once the first has ended."""
    for _ in range(2):
        with StateDir(tmp_path).held():
            pass


def test_leftovers_of_a_killed_mesh_are_ended(tmp_path: Path, part: psutil.Process) -> None:
    """What a mesh that was killed left running is ended, and its record removed."""
    record(part.pid).write(tmp_path)
    with StateDir(tmp_path).held():
        assert part.status() == psutil.STATUS_ZOMBIE
        assert MeshRecord.read(tmp_path) is None


def test_other_program_with_the_same_id_is_left_alone(tmp_path: Path) -> None:
    """A process id that went to another program in the meantime is not touched."""
    other = subprocess.Popen(["sleep", "60"])
    try:
        record(other.pid).write(tmp_path)
        assert leftovers(tmp_path) == []
    finally:
        other.kill()
        other.wait()


def test_part_younger_than_the_record_is_left_alone(tmp_path: Path, part: psutil.Process) -> None:
    """A part of another mesh that got the same process id later is not touched."""
    record(part.pid).write(tmp_path)
    before = part.create_time() - 60
    os.utime(tmp_path / "mesh.json", (before, before))
    assert leftovers(tmp_path) == []


def test_broken_record_does_not_stop_a_start(tmp_path: Path) -> None:
    """A record that cannot be read names nothing that could be ended."""
    (tmp_path / "mesh.json").write_text("{")
    with StateDir(tmp_path).held():
        assert not (tmp_path / "mesh.json").exists()
