"""ConfigService over real sockets and a real etcd."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from braid.config.v1 import config_pb2
from services.chassis import keys
from services.chassis.registry import Registry
from services.chassis.status import reason_of
from services.router.builtin_policy import builtin_policy


@asynccontextmanager
async def refused(code: grpc.StatusCode, reason: str) -> AsyncIterator[None]:
    """The call inside ends with this code and this reason."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        yield
    assert (caught.value.code(), reason_of(caught.value)) == (code, reason)


async def register(center: Any, folder: Path, version: str = "v1") -> Any:
    return await center.RegisterModel(
        config_pb2.RegisterModelRequest(model="demo", version=version, uri=folder.as_uri())
    )


async def test_registered_version_can_be_read(config_center: Any, version_folder: Path) -> None:
    """GetModel and ListModels return the record as it was stored."""
    made = await register(config_center, version_folder)
    got = await config_center.GetModel(config_pb2.GetModelRequest(model="demo", version="v1"))
    listed = await config_center.ListModels(config_pb2.ListModelsRequest())
    assert got.model_version == made.model_version
    assert list(listed.model_versions) == [made.model_version]
    assert got.revision == made.revision


async def test_version_is_immutable(config_center: Any, version_folder: Path) -> None:
    """A second registration of a version fails and changes nothing."""
    first = await register(config_center, version_folder)
    (version_folder / "model.safetensors").write_bytes(b"other")
    async with refused(grpc.StatusCode.ALREADY_EXISTS, "ALREADY_EXISTS"):
        await register(config_center, version_folder)
    got = await config_center.GetModel(config_pb2.GetModelRequest(model="demo", version="v1"))
    assert got.model_version == first.model_version


async def test_unexpected_files_are_refused(config_center: Any, version_folder: Path) -> None:
    """A folder that is not what its publisher says is not recorded."""
    wrong = config_pb2.ModelFile(path="model.safetensors", sha256="0" * 64)
    async with refused(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST"):
        await config_center.RegisterModel(
            config_pb2.RegisterModelRequest(
                model="demo", version="v1", uri=version_folder.as_uri(), expected_files=[wrong]
            )
        )
    listed = await config_center.ListModels(config_pb2.ListModelsRequest())
    assert not listed.model_versions


async def test_list_does_not_mix_models(config_center: Any, version_folder: Path) -> None:
    """A model's versions do not include those of a model whose name goes on."""
    for model in ("demo", "demo2"):
        await config_center.RegisterModel(
            config_pb2.RegisterModelRequest(model=model, version="v1", uri=version_folder.as_uri())
        )
    listed = await config_center.ListModels(config_pb2.ListModelsRequest(model="demo"))
    assert [record.model for record in listed.model_versions] == ["demo"]


async def test_traffic_is_stored_as_operators_write_it(
    config_center: Any, registry: Registry, version_folder: Path
) -> None:
    """SetTraffic leaves a plain object under the traffic key, and GetTraffic reads it."""
    await register(config_center, version_folder)
    await config_center.SetTraffic(config_pb2.SetTrafficRequest(model="demo", shares={"v1": 5}))
    entry = await registry.get(keys.traffic_key("demo"))
    assert entry is not None
    assert json.loads(entry.value) == {"v1": 5}
    got = await config_center.GetTraffic(config_pb2.GetTrafficRequest(model="demo"))
    assert (dict(got.shares), got.revision) == ({"v1": 5}, entry.mod_revision)


async def test_hand_edit_is_read_back(config_center: Any, registry: Registry) -> None:
    """What an operator puts with etcdctl is what GetTraffic returns."""
    await registry.put(keys.traffic_key("demo"), b'{"v1": 95, "v2": 5}\n')
    got = await config_center.GetTraffic(config_pb2.GetTrafficRequest(model="demo"))
    assert dict(got.shares) == {"v1": 95, "v2": 5}


async def test_share_of_an_unrecorded_version_is_refused(config_center: Any) -> None:
    """Traffic cannot be sent to a version that was never registered."""
    async with refused(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST"):
        await config_center.SetTraffic(config_pb2.SetTrafficRequest(model="demo", shares={"v9": 1}))


async def test_policy_without_one_stored_is_the_built_in(config_center: Any) -> None:
    """Revision 0 says that nothing is stored; the policy is the one routers use then."""
    got = await config_center.GetPolicy(config_pb2.GetPolicyRequest())
    assert (got.policy, got.revision) == (builtin_policy(), 0)


async def test_policy_round_trip(config_center: Any) -> None:
    """A stored policy comes back equal, with the revision it was written at."""
    policy = builtin_policy()
    del policy.rules[1:]
    put = await config_center.PutPolicy(config_pb2.PutPolicyRequest(policy=policy))
    got = await config_center.GetPolicy(config_pb2.GetPolicyRequest())
    assert (got.policy, got.revision) == (policy, put.revision)


def _put_policy(center: Any, revision: int) -> Awaitable[Any]:
    request = config_pb2.PutPolicyRequest(policy=builtin_policy(), expected_revision=revision)
    return center.PutPolicy(request)  # type: ignore[no-any-return]


def _put_group(center: Any, revision: int) -> Awaitable[Any]:
    group = config_pb2.Group(group="diffusion", max_steps=8)
    request = config_pb2.PutGroupRequest(group=group, expected_revision=revision)
    return center.PutGroup(request)  # type: ignore[no-any-return]


@pytest.mark.parametrize("put", [_put_policy, _put_group])
async def test_stale_writer_is_told(config_center: Any, put: Any) -> None:
    """A write on an old revision is ABORTED; on the present one it succeeds."""
    first = await put(config_center, 0)
    async with refused(grpc.StatusCode.ABORTED, "REVISION_CONFLICT"):
        await put(config_center, 0)
    second = await put(config_center, first.revision)
    assert second.revision > first.revision


async def test_group_round_trip_keeps_what_is_unset(config_center: Any) -> None:
    """A group comes back as it was put: unset stays unset, zero stays zero."""
    group = config_pb2.Group(group="diffusion", max_steps=8, queue_length=0)
    await config_center.PutGroup(config_pb2.PutGroupRequest(group=group))
    got = await config_center.GetGroup(config_pb2.GetGroupRequest(group="diffusion"))
    listed = await config_center.ListGroups(config_pb2.ListGroupsRequest())
    assert got.group == group
    assert list(listed.groups) == [group]
    assert got.group.HasField("queue_length")
    assert not got.group.HasField("max_batch_size")


@pytest.mark.parametrize(
    ("call", "request_message"),
    [
        ("GetModel", config_pb2.GetModelRequest(model="demo", version="v7")),
        ("GetGroup", config_pb2.GetGroupRequest(group="none")),
    ],
)
async def test_what_is_not_stored_is_not_found(
    config_center: Any, call: str, request_message: Any
) -> None:
    """Reading what nobody stored is NOT_FOUND."""
    async with refused(grpc.StatusCode.NOT_FOUND, "NOT_FOUND"):
        await getattr(config_center, call)(request_message)


@pytest.mark.parametrize(
    ("call", "request_message"),
    [
        ("GetModel", config_pb2.GetModelRequest(model="../x", version="v1")),
        ("GetTraffic", config_pb2.GetTrafficRequest(model="a/b")),
        ("GetGroup", config_pb2.GetGroupRequest()),
        ("PutPolicy", config_pb2.PutPolicyRequest()),
        ("PutGroup", config_pb2.PutGroupRequest(group=config_pb2.Group(group="W 1"))),
        ("RegisterModel", config_pb2.RegisterModelRequest(model="demo", version="latest")),
        ("RegisterModel", config_pb2.RegisterModelRequest(model="demo", version="v1", uri="x")),
    ],
)
async def test_bad_names_reach_no_key(
    config_center: Any, registry: Registry, call: str, request_message: Any
) -> None:
    """Bad input is INVALID_ARGUMENT and leaves etcd as it was."""
    async with refused(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST"):
        await getattr(config_center, call)(request_message)
    assert not (await registry.list(keys.ROOT)).entries


async def test_bad_hand_edit_is_reported(config_center: Any, registry: Registry) -> None:
    """A stored value that does not parse is named as such, and a good write replaces it."""
    await registry.put(keys.group_key("diffusion"), b'{"max_steps": "30",}')
    async with refused(grpc.StatusCode.FAILED_PRECONDITION, "STORED_VALUE_INVALID"):
        await config_center.GetGroup(config_pb2.GetGroupRequest(group="diffusion"))
    group = config_pb2.Group(group="diffusion", max_steps=8)
    await config_center.PutGroup(config_pb2.PutGroupRequest(group=group))
    got = await config_center.GetGroup(config_pb2.GetGroupRequest(group="diffusion"))
    assert got.group == group


async def test_value_beyond_etcd_is_refused_whole(config_center: Any, registry: Registry) -> None:
    """A policy of 2 MB is refused by the limit's name, and the stored one stays."""
    first = await config_center.PutPolicy(config_pb2.PutPolicyRequest(policy=builtin_policy()))
    policy = builtin_policy()
    policy.rules[0].match.labels["padding"] = "x" * 2_000_000
    async with refused(grpc.StatusCode.INVALID_ARGUMENT, "LIMIT_EXCEEDED"):
        await config_center.PutPolicy(config_pb2.PutPolicyRequest(policy=policy))
    entry = await registry.get(keys.POLICY)
    assert entry is not None
    assert entry.mod_revision == first.revision
