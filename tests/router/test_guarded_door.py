"""The router's door over real sockets: who gets to a worker, and what others are told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import grpc
import grpc.aio
import pytest
from google.rpc import error_details_pb2
from google.rpc.status_pb2 import Status
from prometheus_client import CollectorRegistry

from braid.config.v1 import config_pb2
from braid.inference.v1 import inference_pb2 as pb
from services.chassis.mirror_state import MirrorState
from services.chassis.security.audit import Audit
from services.chassis.security.callers import Callers
from services.chassis.status import DETAILS_KEY
from services.router.guarded_door import GuardedDoor
from services.router.proxy import TARGET_KEY
from services.router.quota import Quotas
from tests.callers import Known, changes, known
from tests.clock import Clock
from tests.fakes.worker import FakeWorker
from tests.router.calls import CODE, SLOW, Stream, drained, failure, summary
from tests.router.proxies import Front, front

UnaryCall = grpc.aio.UnaryUnaryCall[pb.GenerateRequest, pb.GenerateResponse]


@pytest.fixture
async def worker() -> AsyncIterator[FakeWorker]:
    worker = FakeWorker("w1")
    await worker.start()
    yield worker
    await worker.stop()


class Guarded:
    """A router that knows one caller, at a time that stands still."""

    def __init__(self, caller: Known) -> None:
        self.caller = caller
        self.denials = CollectorRegistry()
        self.clock = Clock()
        callers = Callers()
        callers.apply(MirrorState(), changes(caller))
        self.door = GuardedDoor(callers, Quotas(self.clock), Audit(self.denials))
        self.front: Front

    @asynccontextmanager
    async def before(self, worker: FakeWorker) -> AsyncIterator[Guarded]:
        """Running in front of the worker."""
        async with front(worker, door=self.door) as self.front:
            yield self

    def call(self, request: pb.GenerateRequest = CODE) -> UnaryCall:
        """A call by the caller."""
        return cast("UnaryCall", self.front.client.Generate(request, metadata=self.caller.metadata))

    def stream(self, request: pb.GenerateRequest) -> Stream:
        """The same as a stream."""
        call = self.front.client.GenerateStream(request, metadata=self.caller.metadata)
        return cast("Stream", call)

    def denied(self, cause: str) -> float:
        """Calls denied for a cause."""
        return self.denials.get_sample_value("braid_denied_calls_total", {"cause": cause}) or 0


def may(**allowed: object) -> config_pb2.Caller:
    return config_pb2.Caller(allowed=config_pb2.Allowed(**allowed))  # type: ignore[arg-type]


def within(**quota: float) -> config_pb2.Caller:
    return config_pb2.Caller(quota=config_pb2.Quota(**quota))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "record",
    [
        config_pb2.Caller(),
        may(
            tasks=[CODE.task, pb.TASK_MATH],
            models=["m"],
            groups=["diffusion"],
            networks=["10.0.0.0/8", "127.0.0.0/8"],
        ),
    ],
)
async def test_caller_within_its_limits_is_served(
    worker: FakeWorker, record: config_pb2.Caller
) -> None:
    """A known caller is served, and its key does not reach the worker."""
    async with Guarded(known("editor", record)).before(worker) as guarded:
        assert (await guarded.call()).text == "ok"
        assert (await drained(guarded.stream(CODE)))[-1].HasField("finished")
    assert all("authorization" not in call.metadata for call in worker.received)


REFUSED = [
    (may(tasks=[pb.TASK_MATH]), "task"),
    (may(models=["other"]), "model"),
    (may(groups=["ar"]), "group"),
    (may(networks=["10.0.0.0/8"]), "network"),
    (config_pb2.Caller(disabled=True), "disabled"),
]


@pytest.mark.parametrize(("record", "cause"), REFUSED, ids=[cause for _, cause in REFUSED])
async def test_caller_outside_its_limits_is_refused(
    worker: FakeWorker, record: config_pb2.Caller, cause: str
) -> None:
    """A call that its caller may not make reaches no worker and is counted by cause."""
    async with Guarded(known("editor", record)).before(worker) as guarded:
        assert summary(await failure(guarded.call())) == "PERMISSION_DENIED PERMISSION_DENIED"
        streamed = await failure(drained(guarded.stream(CODE)))
        assert summary(streamed) == "PERMISSION_DENIED PERMISSION_DENIED"
        assert guarded.denied(cause) == 2
    assert not worker.received


async def test_named_model_must_be_allowed(worker: FakeWorker) -> None:
    """A model that the request names is judged before anything is chosen."""
    request = pb.GenerateRequest(model="secret")
    request.MergeFrom(CODE)
    async with Guarded(known("editor", may(models=["m"]))).before(worker) as guarded:
        assert (await failure(guarded.call(request))).code() == grpc.StatusCode.PERMISSION_DENIED


@pytest.mark.parametrize("metadata", [(), (("authorization", "Bearer braid_x"),)])
async def test_stranger_is_refused(
    worker: FakeWorker, metadata: tuple[tuple[str, str], ...]
) -> None:
    """Without a good key nothing is served, nor is it said what would have been wrong."""
    async with Guarded(known()).before(worker) as guarded:
        for request in (CODE, pb.GenerateRequest()):
            error = await failure(guarded.front.client.Generate(request, metadata=metadata))
            assert summary(error) == "UNAUTHENTICATED UNAUTHENTICATED"
    assert not worker.received


def retry_s(error: grpc.aio.AioRpcError) -> float:
    """Seconds that the error's RetryInfo names."""
    details = dict(error.trailing_metadata() or ())[DETAILS_KEY]
    assert isinstance(details, bytes)
    info = error_details_pb2.RetryInfo()
    assert any(detail.Unpack(info) for detail in Status.FromString(details).details)
    return float(info.retry_delay.ToTimedelta().total_seconds())


EXCEEDED = "RESOURCE_EXHAUSTED QUOTA_EXCEEDED"


async def test_requests_per_second(worker: FakeWorker) -> None:
    """The third of two calls a second is refused, and comes through after the time named."""
    caller = known("editor", within(requests_per_second=2))
    async with Guarded(caller).before(worker) as guarded:
        await guarded.call()
        await guarded.call()
        error = await failure(guarded.call())
        assert summary(error) == EXCEEDED
        guarded.clock.now += retry_s(error)
        await guarded.call()


async def test_concurrency(worker: FakeWorker) -> None:
    """A second call at once is refused; a call that was cancelled makes room."""
    async with Guarded(known("editor", within(concurrency=1))).before(worker) as guarded:
        stream = guarded.stream(SLOW)
        await stream.read()
        assert summary(await failure(guarded.call())) == EXCEEDED
        stream.cancel()
        await worker.cancelled.wait()
        await guarded.call()


@pytest.mark.parametrize("streamed", [False, True])
async def test_tokens_count_as_used(worker: FakeWorker, streamed: bool) -> None:
    """Tokens are taken as asked for and given back as the answer's usage says."""
    request = pb.GenerateRequest(sampling=pb.Sampling(max_new_tokens=80))
    request.MergeFrom(CODE)
    worker.usage = pb.Usage(prompt_tokens=4, completion_tokens=3)
    async with Guarded(known("editor", within(tokens_per_minute=100))).before(worker) as guarded:
        for _ in range(2):
            if streamed:
                await drained(guarded.stream(request))
            else:
                await guarded.call(request)
        worker.usage = pb.Usage(completion_tokens=80)
        await guarded.call(request)
        assert summary(await failure(guarded.call(request))) == EXCEEDED


async def test_failed_call_uses_no_tokens(worker: FakeWorker) -> None:
    """A call that no worker began does not count against its caller."""
    request = pb.GenerateRequest(model="absent", sampling=pb.Sampling(max_new_tokens=90))
    request.MergeFrom(CODE)
    async with Guarded(known("editor", within(tokens_per_minute=100))).before(worker) as guarded:
        for _ in range(3):
            assert summary(await failure(guarded.call(request))) != EXCEEDED


async def test_one_callers_quota_is_no_other_callers(worker: FakeWorker) -> None:
    """Who asks for too much is refused alone."""
    greedy, modest = known("greedy", within(requests_per_second=1)), known("modest")
    callers, clock = Callers(), Clock()
    callers.apply(MirrorState(), changes(greedy, modest))
    door = GuardedDoor(callers, Quotas(clock), Audit(CollectorRegistry()))
    async with front(worker, door=door) as running:
        await running.client.Generate(CODE, metadata=greedy.metadata)
        await failure(running.client.Generate(CODE, metadata=greedy.metadata))
        await running.client.Generate(CODE, metadata=modest.metadata)


@pytest.mark.parametrize(
    ("role", "code"),
    [
        (config_pb2.ROLE_CALLER, grpc.StatusCode.PERMISSION_DENIED),
        (config_pb2.ROLE_OPERATOR, grpc.StatusCode.OK),
    ],
)
async def test_naming_a_node_is_for_operators(
    worker: FakeWorker, role: config_pb2.Role, code: grpc.StatusCode
) -> None:
    """Only an operator's call may name the node that answers it."""
    caller = known("editor", config_pb2.Caller(role=role))
    async with Guarded(caller).before(worker) as guarded:
        metadata = (*caller.metadata, (TARGET_KEY, "w1"))
        call = guarded.front.client.Generate(CODE, metadata=metadata)
        assert await call.code() == code


async def test_stranger_holds_no_batch_open(worker: FakeWorker) -> None:
    """A batch of a stranger ends before its first item; a caller's items are answered."""
    async with Guarded(known()).before(worker) as guarded:
        batch = guarded.front.client.GenerateBatch
        assert await batch().code() == grpc.StatusCode.UNAUTHENTICATED
        items = [pb.GenerateBatchRequest(item_id="i1", request=CODE)]
        call = batch(iter(items), metadata=guarded.caller.metadata)
        assert [item.response.text async for item in call] == ["ok"]
