"""A worker that has just become READY."""

from __future__ import annotations

import statistics
import time

import grpc.aio
import pytest

from braid.inference.v1 import inference_pb2 as inference
from braid.inference.v1.inference_pb2_grpc import InferenceServiceStub
from services.chassis.channel import open_channel
from tests.e2e.running_mesh import RunningMesh
from tests.eventually import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

REASONING = inference.GenerateRequest(
    task=inference.TASK_REASONING,
    prompt="Anna has 12 lamps. Then 9 more arrive. How many lamps are there now?",
)
TAKES_TRAFFIC_S = 2.0
COLD = 3.0
"""A first call this much slower than later ones was not warmed up."""


async def test_new_worker_takes_traffic_and_is_warm(
    mesh: RunningMesh, router: grpc.aio.Channel
) -> None:
    """A new worker answers calls within 2 s of READY, its first as fast as its fifth."""
    node = await mesh.mesh.add_worker("ar")
    ready = time.monotonic()
    stub = InferenceServiceStub(router)

    async def answered_by_the_new_node() -> bool:
        response = await stub.Generate(REASONING, timeout=60)
        return bool(response.served_by.node_id == node.node_id)

    await eventually(answered_by_the_new_node, timeout_s=TAKES_TRAFFIC_S)
    assert time.monotonic() - ready < TAKES_TRAFFIC_S


async def test_first_call_is_as_fast_as_the_fifth(mesh: RunningMesh) -> None:
    """Warm-up is real: a fresh worker's first call costs what later ones cost."""
    node = await mesh.mesh.add_worker("diffusion")
    request = inference.GenerateRequest(
        task=inference.TASK_ACTION_CONTROL,
        prompt="Move the gripper from (4, 20, 9) to (10, 12, 9).",
    )
    async with open_channel(node.address) as channel:
        stub = InferenceServiceStub(channel)
        seconds = [await _seconds_of_a_call(stub, request) for _ in range(5)]
    assert seconds[0] < COLD * statistics.median(seconds[1:])


async def _seconds_of_a_call(
    stub: InferenceServiceStub, request: inference.GenerateRequest
) -> float:
    """Time on the worker; the channel's own start does not count."""
    response = await stub.Generate(request, timeout=60)
    return float(response.timing.total.ToTimedelta().total_seconds())
