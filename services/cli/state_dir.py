"""The folder in which a mesh keeps its data, its logs and its record."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from services.cli.mesh_failure import StateDirBusy
from services.cli.mesh_record import FILE_NAME, BadMeshRecord, MeshRecord

_CLOCK_SLACK_S = 1.5
"""How far the kernel's start times may be off: they count from a boot time in whole seconds."""

_ENDING_S = 10.0
"""Time that parts of a mesh whose `braid up` was killed have to end by themselves."""


class StateDir:
    """Paths of one mesh on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.logs = self.path / "logs"
        self.etcd_data = self.path / "etcd"

    def log(self, part: str) -> Path:
        """Where ``part`` writes its log."""
        return self.logs / f"{part}.log"

    def data(self, part: str) -> Path:
        """Folder that ``part`` may keep files in."""
        folder = self.path / "data" / part
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keeps the folder to this process; what an earlier mesh left running is ended.

        Raises StateDirBusy.
        """
        self.logs.mkdir(parents=True, exist_ok=True)
        with (self.path / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StateDirBusy(f"another mesh runs in {self.path}") from None
            end_leftovers(self.path)
            yield


def end_leftovers(state_dir: Path) -> None:
    """Ends the processes of a mesh whose `braid up` is gone and removes its record."""
    for process in leftovers(state_dir):
        _end(process)
    MeshRecord.remove(state_dir)


def leftovers(state_dir: Path) -> list[psutil.Process]:
    """Processes named by the record that still are what it says.

    A process id may belong to another program by now: it counts only if it was
    there when the record was written and its command line is one of ours.
    """
    try:
        record = MeshRecord.read(state_dir)
    except BadMeshRecord:
        return []
    if record is None:
        return []
    written = (state_dir / FILE_NAME).stat().st_mtime
    pids = [*(node.pid for node in record.nodes), *record.pids.model_dump().values()]
    return [process for pid in pids if (process := _part(pid, written)) is not None]


def _part(pid: int, recorded_at: float) -> psutil.Process | None:
    try:
        process = psutil.Process(pid)
        command = " ".join(process.cmdline())
        ours = "services." in command or "etcd" in command
        started_before = process.create_time() <= recorded_at + _CLOCK_SLACK_S
        return process if ours and started_before else None
    except psutil.Error:
        return None


def _end(process: psutil.Process) -> None:
    deadline = time.monotonic() + _ENDING_S
    try:
        process.terminate()
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            if time.monotonic() > deadline:
                process.kill()
            time.sleep(0.05)
    except psutil.NoSuchProcess:
        return
