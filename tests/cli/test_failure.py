"""A failed call as one line, over a real connection."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc.aio
import pytest

from braid.inference.v1 import inference_pb2 as inference
from braid.inference.v1 import inference_pb2_grpc
from services.chassis.channel import open_channel
from services.chassis.errors import FieldViolation, InvalidRequest, QueueFull, ServiceError
from services.chassis.server import RpcServer, ServiceEntry
from services.cli.failure import describe, one_line

SERVICE = "braid.inference.v1.InferenceService"


class Refusing(inference_pb2_grpc.InferenceServiceServicer):
    """Fails each call with the error it holds."""

    error: Exception = ServiceError("")

    async def Generate(
        self,
        request: inference.GenerateRequest,
        context: grpc.aio.ServicerContext[object, object],
    ) -> inference.GenerateResponse:
        """Raises the error."""
        raise self.error


@pytest.fixture
async def refusing() -> AsyncIterator[tuple[Refusing, inference_pb2_grpc.InferenceServiceStub]]:
    """A server that refuses, and a stub on it."""
    servicer = Refusing()
    add = inference_pb2_grpc.add_InferenceServiceServicer_to_server
    server = RpcServer("127.0.0.1:0", [ServiceEntry(SERVICE, add, servicer)])
    port = await server.start()
    async with open_channel(f"127.0.0.1:{port}") as channel:
        yield servicer, inference_pb2_grpc.InferenceServiceStub(channel)
    await server.stop(1.0)


async def failure_line(
    refusing: tuple[Refusing, inference_pb2_grpc.InferenceServiceStub], error: Exception
) -> str:
    servicer, stub = refusing
    servicer.error = error
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.Generate(inference.GenerateRequest(), timeout=5)
    return describe(caught.value, "the router")


async def test_reason_and_message(
    refusing: tuple[Refusing, inference_pb2_grpc.InferenceServiceStub],
) -> None:
    """A field named by the message is not said twice."""
    line = await failure_line(refusing, InvalidRequest.field("sampling.top_p", "over 1"))
    assert line == "INVALID_REQUEST: sampling.top_p: over 1"


async def test_further_violations(
    refusing: tuple[Refusing, inference_pb2_grpc.InferenceServiceStub],
) -> None:
    """Fields that the message does not name are added."""
    violations = (FieldViolation("a", "is bad"), FieldViolation("b.c", "is worse"))
    line = await failure_line(refusing, InvalidRequest("two faults", violations=violations))
    assert line == "INVALID_REQUEST: two faults (a: is bad; b.c: is worse)"


async def test_retry_delay(
    refusing: tuple[Refusing, inference_pb2_grpc.InferenceServiceStub],
) -> None:
    """Where a retry makes sense the line says when."""
    line = await failure_line(refusing, QueueFull("no room", retry_after_s=1.5))
    assert line == "QUEUE_FULL: no room (retry in 1.5 s)"


async def call_nobody(**arguments: Any) -> grpc.aio.AioRpcError:
    """The error of a call to an address where nothing listens."""
    async with open_channel("127.0.0.1:1") as channel:
        stub = inference_pb2_grpc.InferenceServiceStub(channel)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.Generate(inference.GenerateRequest(), **arguments)
    return caught.value


async def test_nobody_listens() -> None:
    """An address without a server is named, with a hint."""
    line = describe(await call_nobody(timeout=5), "127.0.0.1:1")
    assert line.startswith("127.0.0.1:1 does not answer")


async def test_status_without_details() -> None:
    """A status that the service did not make itself shows its code."""
    line = describe(await call_nobody(timeout=0.1, wait_for_ready=True), "it")
    assert line.startswith("DEADLINE_EXCEEDED: ")


def test_line_holds_nothing_a_terminal_obeys() -> None:
    """Line breaks and escape sequences from a server do not reach the terminal."""
    assert one_line("a\nb\x1b[2Jc\r") == "a b [2Jc"
