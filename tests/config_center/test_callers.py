"""Callers through ConfigService: keys shown once, rotated with overlap, never lost."""

from __future__ import annotations

import grpc
import grpc.aio
import pytest
from google.protobuf.duration_pb2 import Duration

from braid.config.v1 import config_pb2 as config
from braid.config.v1.config_pb2_grpc import ConfigServiceStub
from services.chassis.mirror_state import Changes, MirrorState
from services.chassis.registry import Registry
from services.chassis.security.callers import Callers
from services.chassis.security.denial import Denied

EDITOR = config.Caller(caller_id="editor", quota=config.Quota(concurrency=3))


async def put(
    center: ConfigServiceStub,
    *,
    new_key: bool = True,
    overlap_s: int = 0,
    expected_revision: int | None = None,
) -> config.PutCallerResponse:
    """Stores EDITOR."""
    request = config.PutCallerRequest(
        caller=EDITOR, new_key=new_key, expected_revision=expected_revision
    )
    request.old_keys_valid_for.CopyFrom(Duration(seconds=overlap_s))
    answer: config.PutCallerResponse = await center.PutCaller(request)
    return answer


async def accepted(registry: Registry, *api_keys: str) -> list[bool]:
    """Whether a router would take each key."""
    listing = await registry.list("/braid/callers/")
    callers = Callers()
    callers.apply(MirrorState(), Changes(put=tuple(listing.entries.values())))

    def takes(api_key: str) -> bool:
        try:
            callers.identify({"authorization": f"Bearer {api_key}"}, dict)
        except Denied:
            return False
        return True

    return [takes(api_key) for api_key in api_keys]


async def test_created_key_works_and_is_stored_nowhere(
    config_center: ConfigServiceStub, registry: Registry
) -> None:
    """The key of the answer is good; etcd holds a hash, and lists hold not even that."""
    created = await put(config_center, expected_revision=0)
    assert await accepted(registry, created.api_key) == [True]
    secret = created.api_key.rpartition("_")[2]
    entry = await registry.get("/braid/callers/editor")
    assert entry
    assert secret.encode() not in entry.value
    listed = await config_center.ListCallers(config.ListCallersRequest())
    assert listed.revisions == {"editor": created.revision}
    assert [key.hash + key.salt for key in listed.callers[0].keys] == [""]
    assert listed.callers[0].quota == EDITOR.quota


@pytest.mark.parametrize(("overlap_s", "old_is_good"), [(0, False), (3600, True)])
async def test_rotation(
    config_center: ConfigServiceStub, registry: Registry, overlap_s: int, old_is_good: bool
) -> None:
    """The old key stays good for the overlap, the new one at once."""
    old = await put(config_center)
    new = await put(config_center, overlap_s=overlap_s)
    assert await accepted(registry, old.api_key, new.api_key) == [old_is_good, True]


async def test_change_keeps_the_keys(config_center: ConfigServiceStub, registry: Registry) -> None:
    """A change of anything else leaves the keys as they are."""
    created = await put(config_center)
    assert not (await put(config_center, new_key=False)).api_key
    assert await accepted(registry, created.api_key) == [True]


async def test_deletion(config_center: ConfigServiceStub, registry: Registry) -> None:
    """A caller that is removed has no good key, and cannot be removed twice."""
    created = await put(config_center)
    request = config.DeleteCallerRequest(caller_id="editor")
    await config_center.DeleteCaller(request)
    assert await accepted(registry, created.api_key) == [False]
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await config_center.DeleteCaller(request)
    assert caught.value.code() == grpc.StatusCode.NOT_FOUND


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (
            config.PutCallerRequest(caller=config.Caller(caller_id="BAD")),
            grpc.StatusCode.INVALID_ARGUMENT,
        ),
        (
            config.PutCallerRequest(caller=config.Caller(caller_id="a", keys=[config.ApiKey()])),
            grpc.StatusCode.INVALID_ARGUMENT,
        ),
        (
            config.PutCallerRequest(caller=EDITOR, old_keys_valid_for=Duration(seconds=-1)),
            grpc.StatusCode.INVALID_ARGUMENT,
        ),
        (config.PutCallerRequest(caller=EDITOR, expected_revision=7), grpc.StatusCode.ABORTED),
    ],
)
async def test_bad_request_stores_nothing(
    config_center: ConfigServiceStub,
    registry: Registry,
    request_: config.PutCallerRequest,
    code: grpc.StatusCode,
) -> None:
    """What is wrong or out of date is refused whole."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await config_center.PutCaller(request_)
    assert caught.value.code() == code
    assert not (await registry.list("/braid/callers/")).entries


async def test_keys_do_not_pile_up(config_center: ConfigServiceStub) -> None:
    """More valid keys than a record may hold are refused; ended ones make room."""
    for _ in range(8):
        await put(config_center, overlap_s=3600)
    with pytest.raises(grpc.aio.AioRpcError, match="8 keys are valid already"):
        await put(config_center, overlap_s=3600)
    answer = await put(config_center)
    assert len(answer.caller.keys) == 1
