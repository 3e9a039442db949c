"""The inference port: what passes through, and what becomes of failures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import grpc
import grpc.aio
import pytest
from google.rpc import error_details_pb2
from google.rpc.status_pb2 import Status

from braid.inference.v1 import inference_pb2 as pb
from services.chassis.channel import MAX_MESSAGE_BYTES
from services.chassis.errors import Draining, QueueFull
from services.chassis.status import DETAILS_KEY, reason_of
from tests.eventually import eventually
from tests.fakes.worker import FakeWorker
from tests.router.calls import CODE, NO_WORKER, SLOW, TASK, drained, failure, summary
from tests.router.proxies import Front, front


@pytest.fixture
async def worker() -> AsyncIterator[FakeWorker]:
    """A worker of the diffusion group."""
    worker = FakeWorker("w1")
    await worker.start()
    yield worker
    await worker.stop()


@pytest.fixture
async def router(worker: FakeWorker) -> AsyncIterator[Front]:
    """A router before that worker."""
    async with front(worker) as running:
        yield running


def raw_call(channel: grpc.aio.Channel, body: bytes) -> grpc.aio.UnaryUnaryCall[bytes, bytes]:
    """A call with a body of our own making."""
    generate: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
        "/braid.inference.v1.InferenceService/Generate"
    )
    return generate(body)


async def test_unary_answer(router: Front, worker: FakeWorker) -> None:
    """A unary call is answered by the node chosen, which got the request byte for byte."""
    request = pb.GenerateRequest(request_id="r1", labels={"a": "b"})
    request.MergeFrom(CODE)
    answer = await router.client.Generate(request)
    assert (answer.text, answer.served_by.node_id) == ("ok", "w1")
    assert worker.received[0].request == request


async def test_unknown_fields_pass_through(router: Front, worker: FakeWorker) -> None:
    """A field that this version does not know still reaches the worker."""
    newer = pb.GenerateRequest.FromString(CODE.SerializeToString() + b"\xfa\x3e\x03new")
    await router.client.Generate(newer)
    assert b"new" in worker.received[0].request.SerializeToString()


async def test_stream_answer(router: Front) -> None:
    """A stream's messages arrive in order, the last one saying who answered."""
    request = pb.GenerateRequest(task=TASK, prompt="slow 3")
    events = [event async for event in router.client.GenerateStream(request)]
    assert [event.delta.text for event in events[:-1]] == ["0 ", "1 ", "2 "]
    assert events[-1].finished.served_by.node_id == "w1"


async def test_stream_is_passed_on_as_it_comes(router: Front) -> None:
    """The first message arrives long before the last one is made."""
    call = router.client.GenerateStream(SLOW)
    assert (await call.read()).delta.text == "0 "
    call.cancel()


async def test_request_id_and_node_in_trailers(router: Front, worker: FakeWorker) -> None:
    """The caller's own request id goes both ways, with the node that answered."""
    call = router.client.Generate(pb.GenerateRequest(request_id="r7", prompt="x", task=TASK))
    trailers = dict(await call.trailing_metadata())
    assert (trailers["x-request-id"], trailers["x-braid-node"]) == ("r7", "w1")
    assert worker.received[0].metadata["x-request-id"] == "r7"


async def test_request_id_is_made_where_none_is_given(router: Front, worker: FakeWorker) -> None:
    """Without a request id a fresh one goes both ways, and metadata can bring one."""
    made = dict(await router.client.Generate(CODE).trailing_metadata())["x-request-id"]
    assert len(made) == 32
    assert worker.received[0].metadata["x-request-id"] == made
    call = router.client.Generate(CODE, metadata=(("x-request-id", "from-metadata"),))
    assert dict(await call.trailing_metadata())["x-request-id"] == "from-metadata"


async def test_trace_context_is_carried(router: Front, worker: FakeWorker) -> None:
    """W3C trace context reaches the worker unchanged; other metadata stays behind."""
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    await router.client.Generate(
        CODE, metadata=(("traceparent", trace), ("tracestate", "a=b"), ("authorization", "key"))
    )
    metadata = worker.received[0].metadata
    assert (metadata["traceparent"], metadata["tracestate"]) == (trace, "a=b")
    assert "authorization" not in metadata


async def test_deadline_is_carried(router: Front, worker: FakeWorker) -> None:
    """The worker learns how much time the caller has left."""
    await router.client.Generate(CODE, timeout=5)
    remaining_s = worker.received[0].remaining_s
    assert remaining_s is not None
    assert 3 < remaining_s < 5.5


async def test_call_without_deadline_gets_the_default(worker: FakeWorker) -> None:
    """A call without a deadline is capped by the router's own."""
    async with front(worker, default_deadline_s=0.3) as router:
        error = await failure(router.client.Generate(SLOW))
    assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert reason_of(error) == "DEADLINE_EXCEEDED"


async def test_deadline_too_short_never_reaches_the_worker(
    router: Front, worker: FakeWorker
) -> None:
    """A call whose deadline is over on arrival costs a worker nothing."""
    error = await failure(router.client.Generate(CODE, timeout=0.001))
    assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert not worker.received


async def test_deadline_stops_the_worker(router: Front, worker: FakeWorker) -> None:
    """At the deadline the caller gets its status and the worker stops."""
    error = await failure(router.client.Generate(SLOW, timeout=0.3))
    assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    async with asyncio.timeout(2):
        await worker.cancelled.wait()


@pytest.mark.parametrize("streaming", [False, True])
async def test_cancel_reaches_the_worker(
    router: Front, worker: FakeWorker, streaming: bool
) -> None:
    """A caller that cancels ends its call on the worker as well."""
    call = (router.client.GenerateStream if streaming else router.client.Generate)(SLOW)
    await eventually(lambda: worker.received)
    call.cancel()
    async with asyncio.timeout(2):
        await worker.cancelled.wait()
    await eventually(lambda: requests(router, code="CANCELLED") == 1)


async def test_status_of_the_worker_passes_unchanged(router: Front, worker: FakeWorker) -> None:
    """Code, message and every detail of a worker's status reach the caller."""

    async def refuse(_request: pb.GenerateRequest) -> AsyncIterator[str]:
        raise QueueFull("the line is full", retry_after_s=2.5)
        yield ""

    worker.script = refuse
    error = await failure(router.client.Generate(CODE))
    assert (error.code(), error.details()) == (
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "the line is full",
    )
    assert reason_of(error) == "QUEUE_FULL"
    status = Status.FromString(dict(error.trailing_metadata())[DETAILS_KEY])
    retry = error_details_pb2.RetryInfo()
    assert any(detail.Unpack(retry) for detail in status.details if detail.Is(retry.DESCRIPTOR))
    assert retry.retry_delay.ToTimedelta().total_seconds() == 2.5
    assert dict(error.trailing_metadata())["x-braid-node"] == "w1"


async def test_bad_request_never_reaches_a_worker(router: Front, worker: FakeWorker) -> None:
    """A request outside the contract is refused with its field, here and now."""
    request = pb.GenerateRequest(task=TASK, prompt="x", sampling=pb.Sampling(max_new_tokens=0))
    error = await failure(router.client.Generate(request))
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "sampling.max_new_tokens" in (error.details() or "")
    assert not worker.received
    assert (await router.client.Generate(CODE)).text == "ok"


async def test_bytes_that_are_no_request(router: Front, worker: FakeWorker) -> None:
    """Bytes that do not parse, bad UTF-8 among them, are an invalid argument."""
    async with grpc.aio.insecure_channel(router.address) as channel:
        for body in (b"\xff\xff\xff", b"\x2a\x01\xff"):
            error = await failure(raw_call(channel, body))
            assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert not worker.received


async def test_message_over_the_limit(router: Front, worker: FakeWorker) -> None:
    """A message over the limit is refused before a worker sees it; one just below passes."""
    around = len(CODE.SerializeToString()) + 8
    large = pb.GenerateRequest(task=TASK, prompt="x" * (MAX_MESSAGE_BYTES - around))
    assert (await router.client.Generate(large)).text == "ok"
    async with grpc.aio.insecure_channel(router.address) as unlimited:
        body = large.SerializeToString() + b"x" * 64
        error = await failure(raw_call(unlimited, body))
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert len(worker.received) == 1


async def test_answer_over_the_limit(router: Front, worker: FakeWorker) -> None:
    """An answer over the limit ends in RESOURCE_EXHAUSTED and hurts no other call."""

    async def huge(_request: pb.GenerateRequest) -> AsyncIterator[str]:
        yield "x" * (MAX_MESSAGE_BYTES + 1)

    script, worker.script = worker.script, huge
    error = await failure(router.client.Generate(CODE))
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    worker.script = script
    assert (await router.client.Generate(CODE)).text == "ok"


async def test_no_worker(router: Front) -> None:
    """Without a node for the task the call fails at once, with a hint when to retry."""
    error = await failure(
        router.client.Generate(pb.GenerateRequest(prompt="x", task=pb.TASK_REASONING))
    )
    assert error.code() is grpc.StatusCode.UNAVAILABLE
    assert reason_of(error) == "NO_WORKER_AVAILABLE"


async def test_registry_never_seen(router: Front) -> None:
    """Until a table was loaded, calls say that the registry is missing."""
    router.tables.forget()
    error = await failure(router.client.Generate(CODE))
    assert reason_of(error) == "REGISTRY_UNAVAILABLE"


async def test_unreached_node_costs_a_second_try(worker: FakeWorker) -> None:
    """A node that cannot be connected to is passed over for another one."""
    gone = FakeWorker("gone")
    await gone.start()
    await gone.stop()
    async with front(worker, gone) as router:
        answers = [await router.client.Generate(CODE) for _ in range(20)]
    assert {answer.served_by.node_id for answer in answers} == {"w1"}


async def test_unreached_only_node(worker: FakeWorker) -> None:
    """Where the only node cannot be connected to, the call says that there is none."""
    async with front(worker) as router:
        await worker.stop()
        error = await failure(router.client.Generate(CODE))
    assert reason_of(error) == "NO_WORKER_AVAILABLE"
    await worker.start()


async def test_unreached_nodes_end_in_one_clear_error() -> None:
    """Where neither of two nodes can be connected to, the call says that there is none."""
    gone = [FakeWorker("g1"), FakeWorker("g2")]
    for worker in gone:
        await worker.start()
        await worker.stop()
    async with front(*gone) as router:
        error = await failure(router.client.Generate(CODE))
    assert summary(error) == NO_WORKER


async def test_draining_node_costs_a_second_try(worker: FakeWorker) -> None:
    """A node that refuses because it drains is passed over for another one."""

    async def refuse(_request: pb.GenerateRequest) -> AsyncIterator[str]:
        raise Draining("about to stop")
        yield ""

    leaving = FakeWorker("leaving")
    leaving.script = refuse
    await leaving.start()
    async with front(worker, leaving) as router:
        answers = [await router.client.Generate(CODE) for _ in range(20)]
        assert leaving.received
    assert {answer.served_by.node_id for answer in answers} == {"w1"}
    await leaving.stop()


async def test_node_lost_in_mid_stream(router: Front, worker: FakeWorker) -> None:
    """A node that goes away in mid-stream ends the stream as lost, never as complete."""
    other = FakeWorker("w2")
    await other.start()
    call = router.client.GenerateStream(SLOW)
    await call.read()
    router.tables.add(other)
    await worker.stop()
    error = await failure(drained(call))
    assert (error.code(), reason_of(error)) == (grpc.StatusCode.UNAVAILABLE, "WORKER_LOST")
    assert not other.received
    await other.stop()
    await worker.start()


async def test_slow_reader_slows_its_worker_only(router: Front, worker: FakeWorker) -> None:
    """A caller that does not read stops its worker's output instead of filling the router."""
    made = 0

    async def endless(request: pb.GenerateRequest) -> AsyncIterator[str]:
        nonlocal made
        while request.prompt == "flood":
            made += 1
            yield "x" * 65536
        yield "ok"

    worker.script = endless
    stalled = router.client.GenerateStream(pb.GenerateRequest(task=TASK, prompt="flood"))
    await stalled.read()
    await asyncio.sleep(0.5)
    before = made
    assert (await router.client.Generate(CODE)).text == "ok"
    await asyncio.sleep(0.5)
    assert made - before <= 2
    assert made * 65536 < 64 * 1024 * 1024
    stalled.cancel()


async def test_calls_are_counted_by_decision(router: Front) -> None:
    """Each call counts once, under what was decided; unknown models share one label."""
    await router.client.Generate(CODE)
    for index in range(20):
        await failure(
            router.client.Generate(pb.GenerateRequest(task=TASK, prompt="x", model=f"n{index}"))
        )
    await eventually(
        lambda: router.metrics.get_sample_value("braid_router_requests_in_flight") == 0
    )
    assert requests(router, code="OK", model="m", version="v1", reason="rule") == 1
    assert requests(router, code="NOT_FOUND", model="unknown") == 20


def requests(router: Front, **labels: str) -> float:
    """Calls counted under labels that include these."""
    return sum(
        sample.value
        for metric in router.metrics.collect()
        for sample in metric.samples
        if sample.name == "braid_router_requests_total" and labels.items() <= sample.labels.items()
    )
