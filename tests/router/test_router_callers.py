"""Router processes that serve known callers alone, with callers in a real etcd."""

from __future__ import annotations

from collections.abc import Awaitable
from pathlib import Path

import grpc
import grpc.aio

from braid.config.v1 import config_pb2
from braid.routing.v1 import routing_pb2
from services.chassis.registry import Registry
from services.cli.etcd_process import EtcdProcess
from tests.callers import Known, known
from tests.etcd import settings_for
from tests.eventually import eventually
from tests.fakes.worker import FakeWorker
from tests.router.calls import CODE, SLOW, failure, summary
from tests.router.processes import Router, register, running_router

OPERATOR_KEY = "0" * 40
AS_OPERATOR = (("authorization", f"Bearer {OPERATOR_KEY}"),)
RESTRICTED = {"BRAID_ACCESS": "callers", "BRAID_OPERATOR_KEY": OPERATOR_KEY}


async def outcome(router: Router, caller: Known) -> str:
    """What a call of the caller comes to: its text, or the summary of its error."""
    try:
        answer = await router.client.Generate(CODE, metadata=caller.metadata, timeout=5)
    except grpc.aio.AioRpcError as error:
        return summary(error)
    return str(answer.text)


async def served(router: Router, caller: Known) -> bool:
    """Whether a call of the caller is answered now."""
    return await outcome(router, caller) == "ok"


async def test_callers_come_and_go_without_restart(
    etcd: EtcdProcess, registry: Registry, tmp_path: Path, workers: list[FakeWorker]
) -> None:
    """A caller is served once stored, refused once disabled; the log has who, not the key."""
    caller = known()
    async with running_router(etcd.endpoint, tmp_path, RESTRICTED) as router:
        await register(registry, workers[0])
        await registry.put(caller.key, caller.value)
        await eventually(lambda: served(router, caller))
        caller.record.disabled = True
        await registry.put(caller.key, caller.value)

        async def is_disabled() -> bool:
            return await outcome(router, caller) == "PERMISSION_DENIED PERMISSION_DENIED"

        await eventually(is_disabled)

        def on_record() -> bool:
            lines = router.logged("call_denied")
            return ("editor", "disabled") in [(line["caller"], line["cause"]) for line in lines]

        await eventually(on_record)
        assert caller.api_key.rpartition("_")[2] not in router.process.log
        assert 'braid_denied_calls_total{cause="disabled"}' in await router.scrape()


async def test_slip_of_a_hand_is_shown_and_locks_nobody_out(
    etcd: EtcdProcess, registry: Registry, tmp_path: Path, workers: list[FakeWorker]
) -> None:
    """A record that does not validate is listed as rejected; the last good one stays in force."""
    caller = known()
    async with running_router(etcd.endpoint, tmp_path, RESTRICTED) as router:
        await register(registry, workers[0])
        await registry.put(caller.key, caller.value)
        await eventually(lambda: served(router, caller))
        await registry.put(caller.key, b'{"caller_id": "editor", "quota": {"concurrency": 0}}')

        async def rejected() -> list[str]:
            request = routing_pb2.GetRoutingTableRequest()
            table = await router.admin.GetRoutingTable(request, metadata=AS_OPERATOR)
            return [value.reason for value in table.rejected]

        assert "quota.concurrency" in (await eventually(rejected))[0]
        assert await served(router, caller)
        assert 'braid_router_config_valid{kind="callers"} 0.0' in await router.scrape()


async def test_admin_port_is_for_operators(
    etcd: EtcdProcess, registry: Registry, tmp_path: Path
) -> None:
    """Admin RPCs want an operator's key; a caller's is not enough, and health asks for none."""
    caller = known()
    operator = known("admin", config_pb2.Caller(role=config_pb2.ROLE_OPERATOR))
    for one in (caller, operator):
        await registry.put(one.key, one.value)
    async with running_router(etcd.endpoint, tmp_path, RESTRICTED) as router:

        def table(metadata: tuple[tuple[str, str], ...]) -> Awaitable[object]:
            request = routing_pb2.GetRoutingTableRequest()
            asked: Awaitable[object] = router.admin.GetRoutingTable(request, metadata=metadata)
            return asked

        for allowed in (AS_OPERATOR, operator.metadata):
            await table(allowed)
        assert (await failure(table(()))).code() == grpc.StatusCode.UNAUTHENTICATED
        assert (await failure(table(caller.metadata))).code() == grpc.StatusCode.PERMISSION_DENIED


async def test_two_routers_share_a_quota(
    own_etcd: EtcdProcess, tmp_path: Path, workers: list[FakeWorker]
) -> None:
    """Each of two routers admits its half; when one has gone the other takes over its part."""
    caller = known("busy", config_pb2.Caller(quota=config_pb2.Quota(concurrency=2)))
    async with (
        Registry(settings_for(own_etcd.endpoint)) as registry,
        running_router(own_etcd.endpoint, tmp_path, RESTRICTED) as one,
        running_router(own_etcd.endpoint, tmp_path, RESTRICTED) as two,
    ):
        await register(registry, workers[0])
        await registry.put(caller.key, caller.value)
        await eventually(lambda: served(one, caller))
        stream = one.client.GenerateStream(SLOW, metadata=caller.metadata)
        await stream.read()

        async def full() -> bool:
            return not await served(one, caller)

        await eventually(full)
        assert await outcome(one, caller) == "RESOURCE_EXHAUSTED QUOTA_EXCEEDED"
        await two.process.stop()
        await eventually(lambda: served(one, caller))
        stream.cancel()
