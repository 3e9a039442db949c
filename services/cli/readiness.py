"""Waiting for the parts of a mesh to be ready, over their own ports."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from braid.routing.v1 import routing_pb2 as routing
from braid.routing.v1.routing_pb2_grpc import RouterServiceStub
from braid.worker.v1 import worker_pb2 as worker
from braid.worker.v1.worker_pb2_grpc import WorkerServiceStub
from services.chassis.channel import open_channel
from services.cli.etcd_process import EtcdProcess
from services.cli.mesh_failure import WorkerFailed
from services.cli.names import state_name

_PAUSE_S = 0.05
_CALL_S = 5.0


async def etcd_healthy(etcd: EtcdProcess) -> None:
    """Returns once etcd says that it is healthy."""
    await _until(lambda: asyncio.to_thread(etcd.is_healthy))


async def serving(address: str) -> None:
    """Returns once the server at ``address`` says SERVING."""
    async with open_channel(address) as channel:
        await _until(lambda: _is_serving(channel))


async def _is_serving(channel: grpc.aio.Channel) -> bool:
    try:
        answer = await health_pb2_grpc.HealthStub(channel).Check(  # type: ignore[attr-defined]
            health_pb2.HealthCheckRequest(), timeout=_CALL_S, wait_for_ready=True
        )
    except grpc.aio.AioRpcError:
        return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


async def worker_ready(node_id: str, admin: str, report: Callable[[str, str], None]) -> None:
    """Follows a worker's states, telling each to ``report``, until it is READY.

    Raises WorkerFailed.
    """
    async with open_channel(admin) as channel:
        await _until(lambda: _follow(node_id, WorkerServiceStub(channel), report))


async def _follow(
    node_id: str, stub: WorkerServiceStub, report: Callable[[str, str], None]
) -> bool:
    """True once READY; False where the stream ended before."""
    states = stub.WatchStatus(worker.WatchStatusRequest(), wait_for_ready=True)
    try:
        while (message := await states.read()) is not grpc.aio.EOF:
            status = message.status
            report(node_id, state_name(status.state))
            if status.state == worker.NODE_STATE_READY:
                return True
            if status.state == worker.NODE_STATE_FAILED:
                raise WorkerFailed(f"{node_id}: {status.reason}")
    except grpc.aio.AioRpcError:
        return False
    finally:
        states.cancel()
    return False


async def nodes_routable(router_admin: str, node_ids: Collection[str]) -> None:
    """Returns once the router can send calls to all of these nodes."""
    async with open_channel(router_admin) as channel:
        stub = RouterServiceStub(channel)
        await _until(lambda: _all_routable(stub, set(node_ids)))


async def _all_routable(stub: RouterServiceStub, node_ids: set[str]) -> bool:
    request = routing.GetRoutingTableRequest()
    try:
        table = await stub.GetRoutingTable(request, timeout=_CALL_S, wait_for_ready=True)
    except grpc.aio.AioRpcError:
        return False
    return node_ids <= {entry.node.node_id for entry in table.nodes if entry.routable}


async def _until(reached: Callable[[], Awaitable[bool]]) -> None:
    """Asks until the answer is yes; the caller sets the time limit."""
    while not await reached():  # noqa: ASYNC110 - it is another process that changes
        await asyncio.sleep(_PAUSE_S)
