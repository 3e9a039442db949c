"""A worker that has just become READY."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

import pytest
import pytest_asyncio

from braid.inference.v1 import inference_pb2 as inference
from braid.inference.v1.inference_pb2_grpc import InferenceServiceStub
from services.chassis.channel import open_channel
from tests.e2e.running_mesh import RunningMesh

pytestmark = pytest.mark.asyncio(loop_scope="session")

REASONING = inference.GenerateRequest(
    task=inference.TASK_REASONING,
    prompt="Anna has 12 lamps. Then 9 more arrive. How many lamps are there now?",
)
CALLS = 5
COLD = 3.0
"""A first call this many times slower than later ones was not warmed up."""


@dataclass
class FirstCalls:
    """From READY until a call went to the node, and what its first answers took there."""

    until_first_s: float
    durations_s: list[float]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def first_calls(mesh: RunningMesh) -> FirstCalls:
    """The first calls that the router gives to a new worker."""
    async with open_channel(mesh.record.router) as channel:
        stub = InferenceServiceStub(channel)
        node = await mesh.mesh.add_worker("ar")
        ready = time.monotonic()
        durations_s: list[float] = []
        until_first_s = float("inf")
        while len(durations_s) < CALLS and time.monotonic() - ready < 60:
            sent_s = time.monotonic() - ready
            response = await stub.Generate(REASONING, timeout=60)
            if response.served_by.node_id == node.node_id:
                until_first_s = min(until_first_s, sent_s)
                durations_s.append(response.timing.total.ToTimedelta().total_seconds())
    return FirstCalls(until_first_s, durations_s)


async def test_new_worker_takes_traffic_within_2_s(first_calls: FirstCalls) -> None:
    """The router sends calls to a worker within 2 s of its being READY."""
    assert first_calls.until_first_s < 2.0


async def test_first_call_is_as_fast_as_the_fifth(first_calls: FirstCalls) -> None:
    """Warm-up is real: a new worker's first call costs what its later ones cost."""
    first, *later = first_calls.durations_s
    assert len(later) == CALLS - 1
    assert first < COLD * statistics.median(later)
