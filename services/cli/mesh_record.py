"""mesh.json: where a running mesh can be reached, for scripts and for other commands."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from braid.inference.v1 import inference_pb2 as inference
from services.cli.mesh_plan import GROUPS, WorkerPlan

FILE_NAME = "mesh.json"


class BadMeshRecord(ValueError):
    """The file is there but is not a mesh record."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True)


class NodeRecord(_Record):
    """One worker; addresses are host:port."""

    node_id: str
    group: str
    paradigm: str
    model: str
    version: str
    address: str
    admin: str
    ops: str
    pid: int

    @classmethod
    def of(cls, worker: WorkerPlan, model: str, version: str, pid: int) -> NodeRecord:
        """The record of a worker as planned, in a process of its own."""
        return cls(
            node_id=worker.node_id,
            group=worker.group,
            paradigm=inference.Paradigm.Name(GROUPS[worker.group].paradigm),
            model=model,
            version=version,
            address=worker.address,
            admin=worker.admin,
            ops=worker.ops,
            pid=pid,
        )


class Pids(_Record):
    """Process ids of the parts that are not workers."""

    etcd: int
    router: int
    config_center: int


class MeshRecord(_Record):
    """Addresses (host:port) and processes of a mesh that is ready."""

    etcd: str
    router: str
    router_admin: str
    router_ops: str
    config_center: str
    api_key: str | None = None
    nodes: tuple[NodeRecord, ...]
    pids: Pids

    @classmethod
    def read(cls, state_dir: Path) -> MeshRecord | None:
        """The record in ``state_dir``, or None where there is none.

        Raises BadMeshRecord.
        """
        path = state_dir / FILE_NAME
        try:
            return cls.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as error:
            fault = str(error).splitlines()[0]
            raise BadMeshRecord(f"{path}: {fault}") from None

    def write(self, state_dir: Path) -> None:
        """Puts the file in place in one move: readers see the whole record or none."""
        draft = state_dir / f".{FILE_NAME}.draft"
        draft.write_text(self.model_dump_json(indent=2) + "\n", encoding="utf-8")
        os.replace(draft, state_dir / FILE_NAME)

    @staticmethod
    def remove(state_dir: Path) -> None:
        """Takes the file away, if it is there."""
        (state_dir / FILE_NAME).unlink(missing_ok=True)
