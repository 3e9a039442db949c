"""Batches through the router: every item is routed by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from prometheus_client import CollectorRegistry

from braid.inference.v1 import inference_pb2 as pb
from services.chassis.errors import QueueFull, UnsupportedParameter
from services.chassis.mirror_state import Changes, MirrorState
from services.chassis.security.audit import Audit
from services.chassis.security.callers import Callers
from services.router.guarded_door import GuardedDoor
from services.router.quota import Quotas
from tests.callers import changes, known
from tests.clock import Clock
from tests.fakes.worker import FakeWorker
from tests.router.calls import CODE
from tests.router.proxies import front

Script = AsyncIterator[str]


def items(count: int) -> list[pb.GenerateBatchRequest]:
    return [pb.GenerateBatchRequest(item_id=f"i{n}", request=CODE) for n in range(count)]


@pytest.fixture
async def pair() -> AsyncIterator[tuple[FakeWorker, FakeWorker]]:
    """Two workers of one model and version."""
    first, second = FakeWorker("w1"), FakeWorker("w2")
    await first.start()
    await second.start()
    yield first, second
    await first.stop()
    await second.stop()


async def test_items_spread_over_the_nodes(pair: tuple[FakeWorker, FakeWorker]) -> None:
    """Both nodes answer items of one stream, at the lowest priority and under the items' ids."""
    async with front(*pair) as router:
        outcomes = [one async for one in router.client.GenerateBatch(items(100))]
    assert sorted(one.item_id for one in outcomes) == sorted(f"i{n}" for n in range(100))
    nodes = Counter(one.response.served_by.node_id for one in outcomes)
    assert min(nodes["w1"], nodes["w2"]) > 10
    received = [call.request for worker in pair for call in worker.received]
    assert {request.priority for request in received} == {pb.PRIORITY_BATCH}
    assert {request.request_id for request in received} == {f"i{n}" for n in range(100)}


async def test_an_item_fails_alone(pair: tuple[FakeWorker, FakeWorker]) -> None:
    """A worker's refusal becomes that item's error, details included; others are answered."""

    async def refuses_the_third(request: pb.GenerateRequest) -> Script:
        if request.request_id == "i3":
            raise UnsupportedParameter.field("thinking", "is not supported")
        yield "ok"

    for worker in pair:
        worker.script = refuses_the_third
    async with front(*pair) as router:
        outcomes = {one.item_id: one async for one in router.client.GenerateBatch(items(8))}
    [failed] = [one for one in outcomes.values() if one.HasField("error")]
    assert failed.item_id == "i3"
    assert failed.error.code == grpc.StatusCode.INVALID_ARGUMENT.value[0]
    assert len(failed.error.details) == 2


async def test_full_nodes_are_asked_again(pair: tuple[FakeWorker, FakeWorker]) -> None:
    """A full queue delays an item and fails none."""
    refused = set[str]()

    async def full_once(request: pb.GenerateRequest) -> Script:
        if request.request_id not in refused:
            refused.add(request.request_id)
            raise QueueFull("full", retry_after_s=0.01)
        yield "ok"

    for worker in pair:
        worker.script = full_once
    async with front(*pair) as router:
        outcomes = [one async for one in router.client.GenerateBatch(items(20))]
    assert [one.response.text for one in outcomes] == ["ok"] * 20
    assert len(refused) == 20


async def test_no_item_is_a_bad_stream(pair: tuple[FakeWorker, FakeWorker]) -> None:
    """Bytes that are no item end the stream as INVALID_ARGUMENT."""
    async with front(*pair) as router, grpc.aio.insecure_channel(router.address) as channel:
        batch: Any = channel.stream_stream("/braid.inference.v1.InferenceService/GenerateBatch")
        with pytest.raises(grpc.aio.AioRpcError) as ended:
            await batch(iter([b"\xff"])).read()
    assert ended.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_caller_who_becomes_a_stranger_is_told_once(
    pair: tuple[FakeWorker, FakeWorker],
) -> None:
    """Whoever loses its key gets no outcome for each further item: the stream ends."""
    caller, callers = known(), Callers()
    callers.apply(MirrorState(), changes(caller))
    door = GuardedDoor(callers, Quotas(Clock()), Audit(CollectorRegistry()))
    async with front(*pair, door=door) as router:
        call = router.client.GenerateBatch(metadata=caller.metadata)
        first, second = items(2)
        await call.write(first)
        assert (await call.read()).HasField("response")
        callers.apply(MirrorState(), Changes(deleted=(caller.key,)))
        await call.write(second)
        assert await call.code() is grpc.StatusCode.UNAUTHENTICATED
    assert sum(len(worker.received) for worker in pair) == 1
