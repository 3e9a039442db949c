"""What a rule does to a call on its way: timeout and overrides, over real sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from braid.config.v1.config_pb2 import Group
from braid.inference.v1 import inference_pb2 as pb
from braid.routing.v1.routing_pb2 import GroupShare, Overrides, Policy, Route
from tests.fakes.worker import FakeWorker
from tests.router.calls import CODE, SLOW, drained, failure
from tests.router.proxies import Front, front


@pytest.fixture
async def worker() -> AsyncIterator[FakeWorker]:
    """A worker of the diffusion group."""
    worker = FakeWorker("w1")
    await worker.start()
    yield worker
    await worker.stop()


def route(router: Front, **more: object) -> None:
    """Puts a policy of one route to the diffusion group into force."""
    groups = [GroupShare(group="diffusion")]
    router.tables.set_policy(Policy(default=Route(groups=groups, **more)))  # type: ignore[arg-type]


@pytest.mark.parametrize("streaming", [False, True])
async def test_timeout_of_the_rule(worker: FakeWorker, streaming: bool) -> None:
    """A call ends at its rule's timeout, though its own deadline is later."""
    async with front(worker) as router:
        route(router, timeout=Duration(nanos=300_000_000))
        send = router.client.GenerateStream if streaming else router.client.Generate
        call = send(SLOW, timeout=20)
        error = await failure(drained(call) if streaming else call)
    assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    remaining_s = worker.received[0].remaining_s
    assert remaining_s is not None
    assert remaining_s <= 0.3


async def test_overrides_reach_the_worker(worker: FakeWorker) -> None:
    """The worker gets the request with the rule's limits, those under the group's cap."""
    async with front(worker) as router:
        route(router, overrides=Overrides(max_steps=8, max_new_tokens=16))
        router.tables.table = replace(
            router.tables.table, records={"diffusion": Group(group="diffusion", max_steps=4)}
        )
        asked = pb.GenerateRequest(sampling=pb.Sampling(seed=1, max_new_tokens=64))
        asked.MergeFrom(CODE)
        await router.client.Generate(asked)
    received = worker.received[0].request
    assert received.diffusion == pb.Diffusion(max_steps=4)
    assert received.sampling == pb.Sampling(seed=1, max_new_tokens=16)
    assert received.prompt == CODE.prompt
