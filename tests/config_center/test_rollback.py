"""Rolling back and retiring, over real sockets and a real etcd."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import grpc
import pytest

from braid.config.v1 import config_pb2
from services.chassis import keys
from services.chassis.registry import Registry
from services.config_center.served_well import last_good
from tests.config_center.conftest import CARD, Nodes
from tests.config_center.rollouts import plan
from tests.config_center.test_servicer import refused, register


async def give(center: Any, version: str) -> None:
    request = config_pb2.SetTrafficRequest(model="demo", shares={version: 100})
    await center.SetTraffic(request)


async def roll_back(center: Any, **fields: Any) -> config_pb2.RollbackResponse:
    answer = await center.Rollback(config_pb2.RollbackRequest(model="demo", **fields))
    assert isinstance(answer, config_pb2.RollbackResponse)
    return answer


@pytest.fixture
async def versions(config_center: Any, version_folder: Path) -> Any:
    """v9, v10 and v11 on record, v9 with the traffic."""
    for version in ("v9", "v10", "v11"):
        await register(config_center, version_folder, version)
    await give(config_center, "v9")
    return config_center


async def test_two_bad_versions_lead_back_to_the_same_one(versions: Any) -> None:
    """v10 bad, back, v11 bad, back: both times to v9, not to the number before."""
    for bad in ("v10", "v11"):
        await give(versions, bad)
        answer = await roll_back(versions)
        assert (answer.from_version, answer.to_version) == (bad, "v9")
    got = await versions.GetTraffic(config_pb2.GetTrafficRequest(model="demo"))
    assert {version for version, share in got.shares.items() if share} == {"v9"}
    assert got.revision == answer.revision


async def test_aborted_candidate_did_not_serve_well(versions: Any) -> None:
    """A version that led in a rollout which was aborted is not gone back to."""
    await versions.StartRollout(
        config_pb2.StartRolloutRequest(model="demo", candidate="v10", plan=plan(90, 100))
    )
    await versions.PromoteRollout(config_pb2.PromoteRolloutRequest(model="demo"))
    await versions.AbortRollout(config_pb2.AbortRolloutRequest(model="demo"))
    await give(versions, "v11")
    assert (await roll_back(versions)).to_version == "v9"


async def test_differences_are_told_before_anything_changes(
    versions: Any, version_folder: Path
) -> None:
    """A dry run compares both records and the shares, and writes nothing."""
    card = {**CARD, "max_context": 2048}
    (version_folder / "braid.json").write_text(json.dumps(card))
    await register(versions, version_folder, "v12")
    (version_folder / "braid.json").write_text(json.dumps(CARD))
    await give(versions, "v12")
    before = await versions.GetTraffic(config_pb2.GetTrafficRequest(model="demo"))
    answer = await roll_back(versions, dry_run=True)
    found = {it.path: (it.before, it.after) for it in answer.differences}
    assert found["max_context"] == ("2048", "1024")
    assert found["shares.v9"] == ("", "1000")
    assert await versions.GetTraffic(config_pb2.GetTrafficRequest(model="demo")) == before


async def test_changed_files_are_not_gone_back_to(versions: Any, version_folder: Path) -> None:
    """A version whose files are no longer what was recorded is refused, and nothing changes."""
    await give(versions, "v10")
    (version_folder / "model.safetensors").write_bytes(b"other")
    await _refused(versions)


async def test_version_whose_nodes_fail_is_refused(versions: Any, prober: Nodes) -> None:
    """Without a node that answers there is no way back to a version."""
    await give(versions, "v10")
    prober.fault = "no node serves v9"
    await _refused(versions)


async def test_nothing_to_go_back_to(versions: Any) -> None:
    """A model that had one version only stays with it."""
    async with refused(grpc.StatusCode.FAILED_PRECONDITION, "ROLLBACK_REFUSED"):
        await roll_back(versions)


async def _refused(center: Any) -> None:
    async with refused(grpc.StatusCode.FAILED_PRECONDITION, "ROLLBACK_REFUSED"):
        await roll_back(center)
    got = await center.GetTraffic(config_pb2.GetTrafficRequest(model="demo"))
    assert dict(got.shares) == {"v10": 100}


def test_hand_edits_count() -> None:
    """What led by an edit of the key is a version to go back to; a rejected edit is not."""
    changes = [
        _edit('{"v1": 5}'),
        _edit('{"v7": 5,}', rejected="is not JSON"),
        _edit('{"v2": 5}'),
    ]
    assert last_good(changes, "demo", "v2") == "v1"


def _edit(after: str, rejected: str = "") -> config_pb2.Change:
    part = config_pb2.KeyChange(key=keys.traffic_key("demo"), after=after, rejected=rejected)
    return config_pb2.Change(keys=[part])


async def retire(center: Any, version: str) -> None:
    await center.RetireModel(config_pb2.RetireModelRequest(model="demo", version=version))


async def test_retired_version_is_gone_for_good(versions: Any, version_folder: Path) -> None:
    """A retired version is not listed, and its name is never recorded again."""
    await retire(versions, "v10")
    listed = await versions.ListModels(config_pb2.ListModelsRequest(model="demo"))
    assert [it.version for it in listed.model_versions] == ["v11", "v9"]
    async with refused(grpc.StatusCode.ALREADY_EXISTS, "ALREADY_EXISTS"):
        await register(versions, version_folder, "v10")
    async with refused(grpc.StatusCode.NOT_FOUND, "NOT_FOUND"):
        await retire(versions, "v10")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (keys.traffic_key("demo"), b'{"v9": 1, "v10": 1}'),
        (keys.group_key("g"), b'{"group": "g", "version": "v10"}'),
        (keys.node_key("g", "n-1"), b'{"node_id": "n-1", "model": "demo", "version": "v10"}'),
    ],
)
async def test_version_in_use_stays(
    versions: Any, registry: Registry, key: str, value: bytes
) -> None:
    """Traffic, a group or a node that has a version keeps it on record."""
    await registry.put(key, value)
    async with refused(grpc.StatusCode.FAILED_PRECONDITION, "STILL_IN_USE"):
        await retire(versions, "v10")


async def test_version_in_a_rollout_stays(versions: Any) -> None:
    """A rollout keeps its candidate on record until it is over."""
    await versions.StartRollout(config_pb2.StartRolloutRequest(model="demo", candidate="v10"))
    async with refused(grpc.StatusCode.FAILED_PRECONDITION, "STILL_IN_USE"):
        await retire(versions, "v10")
    await versions.AbortRollout(config_pb2.AbortRolloutRequest(model="demo"))
    await retire(versions, "v10")


async def test_parents_are_recorded(versions: Any, version_folder: Path) -> None:
    """A version names what it was made from; an unknown parent is refused by field."""
    parent = config_pb2.ModelParent(model="demo", version="v9", relation="fine-tuned")
    request = config_pb2.RegisterModelRequest(
        model="demo", version="v12", uri=version_folder.as_uri(), parents=[parent]
    )
    made = await versions.RegisterModel(request)
    assert list(made.model_version.parents) == [parent]
    request.version, request.parents[0].version = "v13", "v8"
    async with refused(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST"):
        await versions.RegisterModel(request)
