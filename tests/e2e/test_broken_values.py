"""Broken hand edits in etcd never stop the traffic."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc.aio
import pytest

from braid.inference.v1 import inference_pb2 as inference
from braid.inference.v1.inference_pb2_grpc import InferenceServiceStub
from braid.routing.v1 import routing_pb2 as routing
from braid.routing.v1.routing_pb2_grpc import RouterServiceStub
from tests.e2e.running_mesh import RunningMesh
from tests.eventually import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

READ_BY_ROUTERS = (
    "/braid/nodes/diffusion/ghost",
    "/braid/weights/diffusion-1",
    "/braid/policy",
    "/braid/traffic/demo-diffusion",
)
READ_BY_OTHERS = (
    "/braid/models/demo-diffusion/v9",
    "/braid/groups/diffusion",
    "/braid/callers/somebody",
    "/braid/rollouts/demo-diffusion",
    "/braid/changes/1",
    "/braid/routers/ghost",
    "/braid/unheard/of",
)
REQUESTS = (
    inference.GenerateRequest(
        task=inference.TASK_TEXT_EDITING,
        edit=inference.Edit(text="We meet in Oslo.", instruction="Replace Oslo with Rome."),
    ),
    inference.GenerateRequest(task=inference.TASK_CHAT, prompt="Hello!"),
)
BROKEN = '{"a": 1,}'


@pytest.fixture
def group_as_it_was(mesh: RunningMesh) -> str:
    """The stored parameters of the diffusion group."""
    return mesh.etcdctl("get", "/braid/groups/diffusion", "--print-value-only").strip()


async def test_traffic_goes_on_while_every_key_is_broken(
    mesh: RunningMesh, router: grpc.aio.Channel, admin: grpc.aio.Channel, group_as_it_was: str
) -> None:
    """With broken JSON in every family of keys no call fails; the table lists what it refused."""
    async with steady_traffic(router) as traffic:
        for key in (*READ_BY_ROUTERS, *READ_BY_OTHERS):
            await asyncio.to_thread(mesh.etcdctl, "put", key, BROKEN)
        await eventually(lambda: rejects(admin, set(READ_BY_ROUTERS)))
        answered = len(traffic.answered)
        more = answered + 2 * len(REQUESTS)
        await eventually(lambda: len(traffic.answered) >= more, timeout_s=60)
        for key in (*READ_BY_ROUTERS, *READ_BY_OTHERS):
            await asyncio.to_thread(mesh.etcdctl, "del", key)
        await asyncio.to_thread(mesh.etcdctl, "put", "/braid/groups/diffusion", group_as_it_was)
        await eventually(lambda: rejects(admin, set()))
    assert traffic.errors == []


class Outcomes:
    """What became of the calls."""

    def __init__(self) -> None:
        self.answered: list[str] = []
        self.errors: list[str] = []


@asynccontextmanager
async def steady_traffic(router: grpc.aio.Channel) -> AsyncIterator[Outcomes]:
    """Sends requests to both paradigms, one after another, while the block runs."""
    outcomes = Outcomes()
    stub = InferenceServiceStub(router)

    async def send() -> None:
        while True:
            for request in REQUESTS:
                await _send_one(stub, request, outcomes)

    sending = asyncio.create_task(send())
    try:
        yield outcomes
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


async def _send_one(
    stub: InferenceServiceStub, request: inference.GenerateRequest, outcomes: Outcomes
) -> None:
    try:
        response = await stub.Generate(request, timeout=60)
        outcomes.answered.append(response.served_by.node_id)
    except grpc.aio.AioRpcError as error:
        outcomes.errors.append(f"{error.code().name}: {error.details()}")


async def rejects(admin: grpc.aio.Channel, keys: set[str]) -> bool:
    """Whether exactly these of the routers' keys are listed as not taken."""
    table = await RouterServiceStub(admin).GetRoutingTable(routing.GetRoutingTableRequest())
    return {one.key for one in table.rejected} & set(READ_BY_ROUTERS) == keys
