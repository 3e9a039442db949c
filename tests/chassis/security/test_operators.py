"""Admin ports for operators alone, over real sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_channelz.v1 import channelz_pb2, channelz_pb2_grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from prometheus_client import CollectorRegistry
from pydantic import SecretStr

from braid.config.v1 import config_pb2
from braid.worker.v1 import worker_pb2, worker_pb2_grpc
from services.chassis.channel import open_channel
from services.chassis.mirror_state import MirrorState
from services.chassis.security.audit import Audit
from services.chassis.security.callers import Callers
from services.chassis.security.keyed_channel import keyed
from services.chassis.security.operators import OperatorsOnly
from services.chassis.server import RpcServer, ServiceEntry
from services.generation.worker import READ_ONLY
from tests.callers import changes, known

OWN_KEY = "0" * 40
CALLER = known("editor")
OPERATOR = known("admin", config_pb2.Caller(role=config_pb2.ROLE_OPERATOR))
GONE = known("gone", config_pb2.Caller(role=config_pb2.ROLE_OPERATOR, disabled=True))


class _Worker(worker_pb2_grpc.WorkerServiceServicer):
    async def WatchStatus(self, request: Any, context: Any) -> AsyncIterator[Any]:
        yield worker_pb2.WatchStatusResponse()

    async def Drain(self, request: Any, context: Any) -> worker_pb2.DrainResponse:
        return worker_pb2.DrainResponse()


@pytest.fixture
async def admin() -> AsyncIterator[grpc.aio.Channel]:
    """A worker's admin port."""
    callers = Callers(SecretStr(OWN_KEY))
    callers.apply(MirrorState(), changes(CALLER, OPERATOR, GONE))
    add = worker_pb2_grpc.add_WorkerServiceServicer_to_server
    server = RpcServer(
        "127.0.0.1:0",
        [ServiceEntry("braid.worker.v1.WorkerService", add, _Worker())],
        channelz=True,
        interceptors=[OperatorsOnly(callers, Audit(CollectorRegistry()), READ_ONLY)],
    )
    port = await server.start(serving=True)
    async with open_channel(f"127.0.0.1:{port}") as channel:
        yield channel
    await server.stop(0)


async def drain(channel: grpc.aio.Channel) -> None:
    await worker_pb2_grpc.WorkerServiceStub(channel).Drain(worker_pb2.DrainRequest())


async def channelz(channel: grpc.aio.Channel) -> None:
    make: Any = channelz_pb2_grpc.ChannelzStub  # typed for blocking channels alone
    stub = make(channel)
    await stub.GetServers(channelz_pb2.GetServersRequest())


async def watch(channel: grpc.aio.Channel) -> None:
    call = worker_pb2_grpc.WorkerServiceStub(channel).WatchStatus(worker_pb2.WatchStatusRequest())
    assert await call.read() is not grpc.aio.EOF


async def health(channel: grpc.aio.Channel) -> None:
    stub: Any = health_pb2_grpc.HealthStub(channel)
    await stub.Check(health_pb2.HealthCheckRequest())


@pytest.mark.parametrize("rpc", [drain, channelz])
@pytest.mark.parametrize("api_key", [OWN_KEY, OPERATOR.api_key], ids=["settings", "etcd"])
async def test_operator_may(admin: grpc.aio.Channel, rpc: Any, api_key: str) -> None:
    """An operator of etcd and the one of the settings reach everything."""
    await rpc(keyed(admin, api_key))


@pytest.mark.parametrize("rpc", [drain, channelz])
@pytest.mark.parametrize(
    ("api_key", "code"),
    [
        ("nonsense", grpc.StatusCode.UNAUTHENTICATED),
        (CALLER.api_key, grpc.StatusCode.PERMISSION_DENIED),
        (GONE.api_key, grpc.StatusCode.PERMISSION_DENIED),
    ],
    ids=["stranger", "caller", "former-operator"],
)
async def test_others_may_not(
    admin: grpc.aio.Channel, rpc: Any, api_key: str, code: grpc.StatusCode
) -> None:
    """Strangers, callers and former operators are refused, at channelz as well."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await rpc(keyed(admin, api_key))
    assert caught.value.code() == code


@pytest.mark.parametrize("rpc", [watch, health])
async def test_what_routers_and_probes_need_is_open(admin: grpc.aio.Channel, rpc: Any) -> None:
    """Status streams and health want no key."""
    await rpc(admin)
