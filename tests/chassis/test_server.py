"""The gRPC server every port is made of, over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from braid.inference.v1 import inference_pb2, inference_pb2_grpc
from services.chassis.channel import MAX_MESSAGE_BYTES, open_channel
from services.chassis.errors import FieldViolation, InvalidRequest
from services.chassis.server import PortInUse, RpcServer, ServiceEntry
from services.chassis.status import reason_of

NAME = "braid.inference.v1.InferenceService"
GRACE_S = 10.0


class _Servicer(inference_pb2_grpc.InferenceServiceServicer):
    """Answers with the prompt; a stream waits for ``release`` between its two parts."""

    def __init__(self) -> None:
        self.release = asyncio.Event()
        self.cleaned_up = asyncio.Event()

    async def Generate(
        self, request: inference_pb2.GenerateRequest, context: Any
    ) -> inference_pb2.GenerateResponse:
        match request.prompt:
            case "bad":
                raise InvalidRequest.field("prompt", "is bad")
            case "bug":
                raise ValueError("SECRET-123")
            case "much":
                violations = (FieldViolation(f"labels[{'x' * 500}]", "é" * 5000),) * 500
                raise InvalidRequest("é%\n" * 50_000, violations=violations)
        return inference_pb2.GenerateResponse(text=request.prompt[:10])

    async def GenerateStream(
        self, request: inference_pb2.GenerateRequest, context: Any
    ) -> AsyncIterator[inference_pb2.GenerateStreamResponse]:
        try:
            for part in ("a", "b"):
                yield inference_pb2.GenerateStreamResponse(delta=inference_pb2.Delta(text=part))
                await self.release.wait()
        finally:
            await asyncio.sleep(0)
            self.cleaned_up.set()


class _Running:
    """A started server and a client of it."""

    def __init__(self) -> None:
        self.servicer = _Servicer()
        add = inference_pb2_grpc.add_InferenceServiceServicer_to_server
        self.server = RpcServer("127.0.0.1:0", [ServiceEntry(NAME, add, self.servicer)])

    async def start(self) -> None:
        self.port = await self.server.start(serving=True)
        self.channel = open_channel(f"127.0.0.1:{self.port}")
        self.stub = inference_pb2_grpc.InferenceServiceStub(self.channel)
        self.health: Any = health_pb2_grpc.HealthStub(self.channel)


@pytest.fixture
async def running() -> AsyncIterator[_Running]:
    served = _Running()
    await served.start()
    yield served
    await served.channel.close()
    await served.server.stop(0)


@pytest.mark.parametrize(
    ("prompt", "code", "reason"),
    [
        ("bad", grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST"),
        ("bug", grpc.StatusCode.INTERNAL, "INTERNAL"),
        ("much", grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST"),
    ],
)
async def test_errors_become_statuses(
    running: _Running, prompt: str, code: grpc.StatusCode, reason: str
) -> None:
    """A typed error keeps its reason however long it is; a bug is INTERNAL without its text."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{running.port}") as client_of_defaults:
        stub = inference_pb2_grpc.InferenceServiceStub(client_of_defaults)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.Generate(inference_pb2.GenerateRequest(prompt=prompt))
    assert (caught.value.code(), reason_of(caught.value)) == (code, reason)
    assert "SECRET" not in (caught.value.details() or "")


@pytest.mark.parametrize("over", [-1024, 1024, 60 * MAX_MESSAGE_BYTES // 4])
async def test_message_limit(running: _Running, over: int) -> None:
    """Just below the limit passes, above is RESOURCE_EXHAUSTED, and the next call is served."""
    request = inference_pb2.GenerateRequest(prompt="x" * (MAX_MESSAGE_BYTES + over))
    client = grpc.aio.insecure_channel(
        f"127.0.0.1:{running.port}", options=[("grpc.max_send_message_length", -1)]
    )
    async with client:
        stub = inference_pb2_grpc.InferenceServiceStub(client)
        if over < 0:
            assert (await stub.Generate(request)).text == "x" * 10
        else:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stub.Generate(request)
            assert caught.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert (await stub.Generate(inference_pb2.GenerateRequest(prompt="next"))).text == "next"


async def test_second_server_on_a_port_is_refused(running: _Running) -> None:
    """A port is never shared silently."""
    with pytest.raises(PortInUse, match=str(running.port)):
        await RpcServer(f"127.0.0.1:{running.port}", []).start()


async def test_drain_waits_for_work_but_not_for_watchers(running: _Running) -> None:
    """A drain ends a health watch with NOT_SERVING, lets a stream finish, and then returns."""
    watch = running.health.Watch(health_pb2.HealthCheckRequest(service=NAME))
    assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
    stream = running.stub.GenerateStream(inference_pb2.GenerateRequest(prompt="x"))
    first = await stream.read()
    stopping = asyncio.create_task(running.server.stop(GRACE_S))
    await asyncio.sleep(0)
    assert not stopping.done()
    running.servicer.release.set()
    second = await stream.read()
    assert await stopping
    assert [first.delta.text, second.delta.text] == ["a", "b"]
    assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING


async def test_end_of_grace_aborts_and_cleans_up(running: _Running) -> None:
    """Work that outlasts the grace ends UNAVAILABLE, and its handler has cleaned up by then."""
    stream = running.stub.GenerateStream(inference_pb2.GenerateRequest(prompt="x"))
    await stream.read()
    assert not await running.server.stop(0.05)
    assert running.servicer.cleaned_up.is_set()
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stream.read()
    assert caught.value.code() == grpc.StatusCode.UNAVAILABLE
