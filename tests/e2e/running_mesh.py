"""What end-to-end tests know of the mesh they share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from services.cli.mesh import Mesh
from services.cli.mesh_record import MeshRecord
from tests.etcd import run_etcd_tool


@dataclass
class RunningMesh:
    """A mesh that is ready; ``states`` grows with what its parts report."""

    mesh: Mesh
    state_dir: Path
    states: list[tuple[str, str]]

    @property
    def record(self) -> MeshRecord:
        """mesh.json as it is now."""
        record = MeshRecord.read(self.state_dir)
        assert record is not None
        return record

    def etcdctl(self, *arguments: str) -> str:
        """What an operator types, and what it prints."""
        return run_etcd_tool("etcdctl", f"--endpoints={self.record.etcd}", *arguments)

    def logs(self) -> str:
        """All log files of all parts."""
        return "\n".join(
            path.read_text(errors="replace") for path in (self.state_dir / "logs").iterdir()
        )
