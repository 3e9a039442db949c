"""Failing, slow and cut workers behind the proxy, over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from braid.inference.v1 import inference_pb2 as pb
from braid.routing.v1.routing_pb2 import GroupShare, Policy, Route
from services.chassis.errors import EngineFailure, InvalidRequest, QueueFull, ServiceError
from services.chassis.status import reason_of
from services.router.node_health import IN_A_ROW
from tests.etcd import Link
from tests.eventually import eventually
from tests.fakes.worker import FakeWorker, Script
from tests.router.calls import CODE, SLOW, TASK, drained, failure
from tests.router.proxies import Front, front

SAFE = pb.GenerateRequest(task=TASK, prompt="x", retry_safe=True)
SEEDED = pb.GenerateRequest(task=TASK, prompt="x", sampling=pb.Sampling(seed=1))


@pytest.fixture
async def pair() -> AsyncIterator[list[FakeWorker]]:
    """Two workers of one version."""
    workers = [FakeWorker("w1"), FakeWorker("w2")]
    for worker in workers:
        await worker.start()
    yield workers
    for worker in workers:
        await worker.stop()


def failing(error: ServiceError) -> Script:
    """A script that fails before its first word."""

    async def script(_request: pb.GenerateRequest) -> AsyncIterator[str]:
        raise error
        yield ""

    return script


async def hang(_request: pb.GenerateRequest) -> AsyncIterator[str]:
    """A script that never says anything."""
    await asyncio.Event().wait()
    yield ""


async def stutter(_request: pb.GenerateRequest) -> AsyncIterator[str]:
    """A script that fails after its first word."""
    yield "half"
    raise EngineFailure("broke")


def metric(router: Front, name: str, **labels: str) -> float:
    """A figure of the router."""
    return router.metrics.get_sample_value(f"braid_router_{name}", labels) or 0


async def test_safe_call_goes_to_another_node(pair: list[FakeWorker]) -> None:
    """A call that may be replayed survives a node that breaks; no other call does."""
    pair[0].script = failing(EngineFailure("broke"))
    async with front(*pair) as router:
        answers = [await router.client.Generate(SAFE) for _ in range(6)]
        assert {answer.served_by.node_id for answer in answers} == {"w2"}
        assert len(pair[0].received) == metric(router, "retries_total", allowed="yes") > 0
        unsafe = [router.client.Generate(CODE) for _ in range(6)]
        codes = {await call.code() for call in unsafe}
    assert grpc.StatusCode.INTERNAL in codes


async def test_failure_that_is_left_is_the_first_ones(pair: list[FakeWorker]) -> None:
    """Where every node fails, the caller gets a worker's own status."""
    for worker in pair:
        worker.script = failing(EngineFailure("broke"))
    async with front(*pair) as router:
        error = await failure(router.client.Generate(SAFE))
    assert reason_of(error) == "ENGINE_FAILURE"
    assert [len(worker.received) for worker in pair] == [1, 1]


async def test_nothing_goes_again_after_the_first_byte(pair: list[FakeWorker]) -> None:
    """A stream that breaks after its first message ends, though it might be replayed."""
    for worker in pair:
        worker.script = stutter
    async with front(*pair) as router:
        call = router.client.GenerateStream(SAFE)
        assert (await call.read()).delta.text == "half"
        assert reason_of(await failure(drained(call))) == "ENGINE_FAILURE"
    assert sum(len(worker.received) for worker in pair) == 1


async def test_full_queue_of_a_worker_costs_a_second_try(pair: list[FakeWorker]) -> None:
    """A node that refuses for being full is passed over, and keeps its good name."""
    pair[0].script = failing(QueueFull("full", retry_after_s=1))
    async with front(*pair) as router:
        for _ in range(3 * IN_A_ROW):
            assert (await router.client.Generate(CODE)).served_by.node_id == "w2"
        assert metric(router, "ejections_total", group="diffusion") == 0


async def test_retries_end_with_their_budget(pair: list[FakeWorker]) -> None:
    """A mesh that refuses everything sees a fifth more calls and a reserve, not a storm."""
    for worker in pair:
        worker.script = failing(QueueFull("full"))
    async with front(*pair) as router:
        for _ in range(50):
            error = await failure(router.client.Generate(CODE))
            assert reason_of(error) == "QUEUE_FULL"
        assert sum(len(worker.received) for worker in pair) <= 50 + 10 + 50 * 0.2
        assert metric(router, "retries_total", allowed="no") > 0
        assert metric(router, "retry_budget") < 1


async def test_failing_node_is_ejected(pair: list[FakeWorker]) -> None:
    """A node whose calls fail gets no more of them, and its callers no more failures."""
    pair[0].script = failing(EngineFailure("broke"))
    async with front(*pair) as router:
        while not metric(router, "ejections_total", group="diffusion"):
            await router.client.Generate(CODE).code()
        before = len(pair[0].received)
        answers = [await router.client.Generate(CODE) for _ in range(20)]
        assert {answer.served_by.node_id for answer in answers} == {"w2"}
        assert len(pair[0].received) == before


async def test_bad_requests_eject_nobody(pair: list[FakeWorker]) -> None:
    """What a worker refuses for the caller's fault is not held against it."""
    for worker in pair:
        worker.script = failing(InvalidRequest("sampling.seed: too bad"))
    async with front(*pair) as router:
        for _ in range(4 * IN_A_ROW):
            await failure(router.client.Generate(CODE))
        assert metric(router, "ejections_total", group="diffusion") == 0


def hedged(router: Front) -> None:
    """Puts a policy into force that hedges soon."""
    route = Route(groups=[GroupShare(group="diffusion")], hedge_after=Duration(nanos=50_000_000))
    router.tables.set_policy(Policy(default=route))


@pytest.mark.parametrize("streaming", [False, True])
async def test_slow_seeded_call_is_hedged(pair: list[FakeWorker], streaming: bool) -> None:
    """A seeded call whose node is silent is answered by another, and counts once."""
    pair[0].script = hang
    async with front(*pair) as router:
        hedged(router)
        for _ in range(5):
            if streaming:
                events = await drained(router.client.GenerateStream(SEEDED, timeout=10))
                served_by = events[-1].finished.served_by
            else:
                served_by = (await router.client.Generate(SEEDED, timeout=10)).served_by
            assert served_by.node_id == "w2"
        assert len(pair[0].received) == metric(router, "hedges_total", answered="second") > 0
        await eventually(pair[0].cancelled.is_set)
        served = [
            sample.value
            for family in router.metrics.collect()
            for sample in family.samples
            if sample.name == "braid_router_requests_total"
        ]
        assert sum(served) == 5


async def test_call_without_a_seed_is_not_hedged(pair: list[FakeWorker]) -> None:
    """Two answers that might differ are never raced."""
    for worker in pair:
        worker.script = hang
    async with front(*pair) as router:
        hedged(router)
        error = await failure(router.client.Generate(CODE, timeout=0.5))
    assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert sum(len(worker.received) for worker in pair) == 1


async def test_cut_connection_costs_only_what_ran_on_it(pair: list[FakeWorker]) -> None:
    """A cut link ends its streams as lost, a safe unary call goes on elsewhere."""
    victim, other = pair
    async with Link(victim.port).listening() as link:
        victim.record.address = link.address
        async with front(victim) as router:
            stream = router.client.GenerateStream(SLOW)
            await stream.read()
            victim.script = hang
            call = asyncio.ensure_future(router.client.Generate(SAFE, timeout=10))
            await eventually(lambda: len(victim.received) == 2)
            router.tables.add(other)
            link.cut()
            assert (await call).served_by.node_id == "w2"
            assert reason_of(await failure(drained(stream))) == "WORKER_LOST"
            victim.script = other.script
            assert (await router.client.Generate(CODE)).text == "ok"
