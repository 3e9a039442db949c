"""Calls over a real socket whose time, or whose caller, goes away."""

from __future__ import annotations

from pathlib import Path

import grpc.aio
import pytest
from google.protobuf.duration_pb2 import Duration

from braid.inference.v1 import inference_pb2 as pb
from tests.eventually import eventually
from tests.generation.serving import Serving, refusal, serving
from tests.generation.slow_model import SlowModel, endless


async def test_passed_deadline_never_starts(scripted: Serving) -> None:
    """A call whose deadline is over does not reach the engine."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await scripted.stub.Generate(
            pb.GenerateRequest(prompt="say a long thing"), timeout=0.000001
        )
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert scripted.engine.snapshot().running == 0


async def test_latency_budget_gives_what_there_is(folder: Path) -> None:
    """When latency_budget ends the answer is what is final by then, and says so."""
    async with serving(folder, model=SlowModel(folder, 0.03)) as worker:
        message = pb.GenerateRequest(
            prompt="abc", latency_budget=Duration(nanos=200_000_000), sampling=endless()
        )
        response = await worker.stub.Generate(message)
        assert response.finish_reason == pb.FINISH_REASON_DEADLINE
        assert response.best_effort


async def test_cancelled_call_frees_the_engine(folder: Path) -> None:
    """When the caller leaves, its sequence leaves the engine within a step."""
    async with serving(folder, model=SlowModel(folder, 0.02)) as worker:
        for method in (worker.stub.Generate, worker.stub.GenerateStream):
            call = method(pb.GenerateRequest(prompt="abc", sampling=endless()))
            await eventually(lambda: worker.engine.snapshot().running == 1)
            call.cancel()
            await eventually(lambda: not worker.engine.snapshot().busy)
        await eventually(lambda: worker.reception.calls.count == 0)


async def test_an_action_is_answered_in_its_period(diffusion_checkpoint: Path) -> None:
    """A control period of 50 steps gives an answer; one without a single step DEADLINE_EXCEEDED."""
    model = SlowModel(diffusion_checkpoint, 0.01)
    async with serving(diffusion_checkpoint, model=model) as worker:
        action = pb.GenerateRequest(task=pb.TASK_ACTION_CONTROL, prompt="abc", sampling=endless())
        await worker.stub.Generate(action)
        period_s = 50 * worker.engine.snapshot().step_seconds
        response = await worker.stub.Generate(action, timeout=period_s)
        assert response.usage.completion_tokens > 0
        forwards = model.forwards
        action.latency_budget.FromMilliseconds(5)
        code, _ = await refusal(worker.stub.Generate(action))
        assert code is grpc.StatusCode.DEADLINE_EXCEEDED
        assert model.forwards == forwards


async def test_grpc_deadline_is_answered_in_time(diffusion_checkpoint: Path) -> None:
    """A diffusion call whose time runs out gets what there is, within its gRPC deadline."""
    folder = diffusion_checkpoint
    async with serving(folder, model=SlowModel(folder, 0.05)) as worker:
        message = pb.GenerateRequest(prompt="abc", sampling=endless())
        response = await worker.stub.Generate(message, timeout=1.0)
        assert response.finish_reason == pb.FINISH_REASON_DEADLINE
        assert response.best_effort
        await eventually(lambda: not worker.engine.snapshot().busy, 2)


async def test_no_time_for_a_forward_is_a_deadline_exceeded(folder: Path) -> None:
    """A call that ends before its answer can is late on both sides, whatever the paradigm."""
    async with serving(folder, model=SlowModel(folder, 0.5)) as worker:
        message = pb.GenerateRequest(prompt="abc", sampling=endless())
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await worker.stub.Generate(message, timeout=0.2)
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        await eventually(lambda: not worker.engine.snapshot().busy, 2)
