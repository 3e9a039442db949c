"""mesh.json, as scripts read it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from services.cli.mesh_plan import plan_worker
from services.cli.mesh_record import BadMeshRecord, MeshRecord, NodeRecord, Pids

RECORD = MeshRecord(
    etcd="127.0.0.1:1",
    router="127.0.0.1:2",
    router_admin="127.0.0.1:3",
    router_ops="127.0.0.1:4",
    config_center="127.0.0.1:5",
    nodes=(NodeRecord.of(plan_worker("ar", 1, 6), "m", "v1", pid=9),),
    pids=Pids(etcd=10, router=11, config_center=12),
)


def test_form(tmp_path: Path) -> None:
    """The file has exactly the fields that scripts rely on."""
    RECORD.write(tmp_path)
    assert json.loads((tmp_path / "mesh.json").read_text()) == {
        "etcd": "127.0.0.1:1",
        "router": "127.0.0.1:2",
        "router_admin": "127.0.0.1:3",
        "router_ops": "127.0.0.1:4",
        "config_center": "127.0.0.1:5",
        "api_key": None,
        "nodes": [
            {
                "node_id": "ar-1",
                "group": "ar",
                "paradigm": "PARADIGM_AUTOREGRESSIVE",
                "model": "m",
                "version": "v1",
                "address": "127.0.0.1:6",
                "admin": "127.0.0.1:7",
                "ops": "127.0.0.1:8",
                "pid": 9,
            }
        ],
        "pids": {"etcd": 10, "router": 11, "config_center": 12},
    }


def test_reads_back(tmp_path: Path) -> None:
    """What was written is what is read, and no draft stays behind."""
    RECORD.write(tmp_path)
    assert MeshRecord.read(tmp_path) == RECORD
    assert [path.name for path in tmp_path.iterdir()] == ["mesh.json"]


def test_absent_record_is_none(tmp_path: Path) -> None:
    """No file means no mesh, which is no error."""
    assert MeshRecord.read(tmp_path) is None


@pytest.mark.parametrize("content", ["", "{", "[]", '{"etcd": "x"}'])
def test_broken_record_is_named(tmp_path: Path, content: str) -> None:
    """A file that is no record is refused by its path."""
    (tmp_path / "mesh.json").write_text(content)
    with pytest.raises(BadMeshRecord, match=r"mesh\.json"):
        MeshRecord.read(tmp_path)


def test_remove_twice(tmp_path: Path) -> None:
    """Removing a record that is gone is no error."""
    RECORD.write(tmp_path)
    MeshRecord.remove(tmp_path)
    MeshRecord.remove(tmp_path)
    assert MeshRecord.read(tmp_path) is None
