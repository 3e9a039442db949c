"""Logs are JSON and hold nothing that users wrote."""

from __future__ import annotations

import json

import grpc.aio
import pytest

from braid.inference.v1 import inference_pb2 as inference
from braid.inference.v1.inference_pb2_grpc import InferenceServiceStub
from tests.e2e.running_mesh import RunningMesh

pytestmark = pytest.mark.asyncio(loop_scope="session")

MARK = "SECRET-7391"


async def test_no_log_line_holds_a_prompt(mesh: RunningMesh, router: grpc.aio.Channel) -> None:
    """Neither calls that succeed nor calls that fail leave their text in any log."""
    stub = InferenceServiceStub(router)
    good = inference.GenerateRequest(
        request_id="for-the-log", task=inference.TASK_CHAT, prompt=f'{MARK}\n{{"level":"error"}}'
    )
    await stub.Generate(good, timeout=60)
    bad = inference.GenerateRequest(
        task=inference.TASK_CHAT,
        prompt=MARK,
        model="no-such-model",
        constraint=inference.Constraint(json_schema=f'{{"{MARK}'),
    )
    with pytest.raises(grpc.aio.AioRpcError):
        await stub.Generate(bad, timeout=60)
    assert MARK not in mesh.logs()


async def test_request_can_be_followed_through_the_logs(
    mesh: RunningMesh, router: grpc.aio.Channel
) -> None:
    """Router and worker log the same request_id, each line one JSON object."""
    request = inference.GenerateRequest(
        request_id="follow-me", task=inference.TASK_CHAT, prompt="Hello!"
    )
    await InferenceServiceStub(router).Generate(request, timeout=60)
    lines = [json.loads(line) for line in mesh.logs().splitlines() if "follow-me" in line]
    services = {line["service"] for line in lines if line.get("request_id") == "follow-me"}
    assert "braid-router" in services
    assert len(services) == 2
