"""A worker that dies takes its own calls along and nothing else."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import dataclass

import grpc.aio
import pytest

from braid.inference.v1 import inference_pb2 as inference
from braid.inference.v1.inference_pb2_grpc import InferenceServiceStub
from braid.routing.v1 import routing_pb2 as routing
from braid.routing.v1.routing_pb2_grpc import RouterServiceStub
from services.chassis.status import reason_of
from tests.e2e.running_mesh import RunningMesh
from tests.eventually import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

STREAMS = 12
EDIT = inference.Edit(text="We meet in Oslo.", instruction="Replace Oslo with Rome.")


@dataclass
class Ended:
    """How one stream ended: the node, and the reason where it failed."""

    node_id: str
    reason: str = ""


async def run_stream(stub: InferenceServiceStub, request: inference.GenerateRequest) -> Ended:
    call = stub.GenerateStream(request, timeout=60)
    try:
        async for _ in call:
            pass
    except grpc.aio.AioRpcError as error:
        return Ended(node_of(await call.trailing_metadata()), reason_of(error))
    return Ended(node_of(await call.trailing_metadata()))


def node_of(metadata: grpc.aio.Metadata | None) -> str:
    return str(dict(metadata or ()).get("x-braid-node", ""))


async def entry_of(admin: grpc.aio.Channel, node_id: str) -> routing.TableNode:
    """The node as the router sees it; empty where it does not."""
    table = await RouterServiceStub(admin).GetRoutingTable(routing.GetRoutingTableRequest())
    found = [entry for entry in table.nodes if entry.node.node_id == node_id]
    return found[0] if found else routing.TableNode()


async def is_routable(admin: grpc.aio.Channel, node_id: str) -> bool:
    return (await entry_of(admin, node_id)).routable


async def carries_a_call(admin: grpc.aio.Channel, node_id: str) -> bool:
    return (await entry_of(admin, node_id)).in_flight > 0


async def test_killed_worker_costs_only_its_own_calls(
    mesh: RunningMesh, router: grpc.aio.Channel, admin: grpc.aio.Channel
) -> None:
    """kill -9 of a worker ends its streams UNAVAILABLE; all others finish, new calls succeed."""
    victim = await mesh.mesh.add_worker("diffusion")
    await eventually(lambda: is_routable(admin, victim.node_id))
    stub = InferenceServiceStub(router)
    request = inference.GenerateRequest(
        task=inference.TASK_TEXT_EDITING,
        edit=EDIT,
        sampling=inference.Sampling(max_new_tokens=64, temperature=2.0),
    )
    os.kill(victim.pid, signal.SIGSTOP)  # so that its streams are still open when it dies
    streams = [asyncio.create_task(run_stream(stub, request)) for _ in range(STREAMS)]
    await eventually(lambda: carries_a_call(admin, victim.node_id))
    os.kill(victim.pid, signal.SIGKILL)
    ended = await asyncio.gather(*streams)

    lost = [one for one in ended if one.reason]
    assert {one.node_id for one in lost} == {victim.node_id}
    assert {one.reason for one in lost} <= {"WORKER_LOST"}
    assert len(lost) < STREAMS
    answers = [await stub.Generate(request, timeout=60) for _ in range(5)]
    assert victim.node_id not in {answer.served_by.node_id for answer in answers}
