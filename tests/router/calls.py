"""Requests that tests send, and what becomes of them."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import cast

import grpc.aio
import pytest

from braid.inference.v1 import inference_pb2 as pb
from services.chassis.status import reason_of
from tests.router.processes import Router

TASK = pb.TASK_CODE_COMPLETION
CODE = pb.GenerateRequest(task=TASK, prompt="x")
SLOW = pb.GenerateRequest(task=TASK, prompt="slow 1000")
ONE_SECOND = pb.GenerateRequest(task=TASK, prompt="slow 20")

NO_WORKER = "UNAVAILABLE NO_WORKER_AVAILABLE"
LOST = "UNAVAILABLE WORKER_LOST"

Stream = grpc.aio.UnaryStreamCall[pb.GenerateRequest, pb.GenerateStreamResponse]


async def failure(call: Awaitable[object]) -> grpc.aio.AioRpcError:
    """The error that a call ends with."""
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call
    return raised.value


def summary(error: grpc.aio.AioRpcError) -> str:
    """Code and ErrorInfo reason of an error."""
    return f"{error.code().name} {reason_of(error)}"


async def outcome(router: Router, request: pb.GenerateRequest = CODE) -> str:
    """Id of the node that answers, or the summary of the error."""
    try:
        return await router.node_of(request)
    except grpc.aio.AioRpcError as error:
        return summary(error)


async def outcomes(router: Router, calls: int, request: pb.GenerateRequest = CODE) -> set[str]:
    """What becomes of several calls in turn."""
    return {await outcome(router, request) for _ in range(calls)}


async def drained(call: Stream) -> list[pb.GenerateStreamResponse]:
    """What a stream still brings."""
    events = []
    while (event := await call.read()) is not grpc.aio.EOF:
        events.append(cast("pb.GenerateStreamResponse", event))
    return events
