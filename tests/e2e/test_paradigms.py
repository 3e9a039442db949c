"""Each task reaches the paradigm that does it best."""

from __future__ import annotations

import grpc.aio
import pytest

from braid.inference.v1 import inference_pb2 as inference
from braid.inference.v1.inference_pb2_grpc import InferenceServiceStub
from services.cli.demo_requests import DEMO_REQUESTS, DemoRequest
from services.cli.names import task_name

pytestmark = pytest.mark.asyncio(loop_scope="session")

by_task = pytest.mark.parametrize(
    "asked", DEMO_REQUESTS, ids=[task_name(asked.request.task) for asked in DEMO_REQUESTS]
)


@by_task
async def test_task_reaches_its_paradigm(asked: DemoRequest, router: grpc.aio.Channel) -> None:
    """A request of each task gets an answer from the paradigm that the policy names."""
    response = await InferenceServiceStub(router).Generate(asked.request, timeout=60)
    assert response.served_by.paradigm == asked.paradigm
    assert response.text
    assert response.finish_reason == inference.FINISH_REASON_STOP


@by_task
async def test_stream_is_the_unary_answer(asked: DemoRequest, router: grpc.aio.Channel) -> None:
    """The deltas of a stream joined are the text of the unary call, and finished comes last."""
    stub = InferenceServiceStub(router)
    whole = await stub.Generate(asked.request, timeout=60)
    events = [event async for event in stub.GenerateStream(asked.request, timeout=60)]
    assert "".join(event.delta.text for event in events) == whole.text
    assert [event.WhichOneof("event") for event in events].index("finished") == len(events) - 1


async def test_latency_budget_takes_a_chat_to_diffusion(router: grpc.aio.Channel) -> None:
    """A caller that cannot wait gets the paradigm that decodes in parallel."""
    request = inference.GenerateRequest(task=inference.TASK_CHAT, prompt="Hello!")
    request.latency_budget.FromMilliseconds(900)
    response = await InferenceServiceStub(router).Generate(request, timeout=60)
    assert response.served_by.paradigm == inference.PARADIGM_DIFFUSION


async def test_diffusion_commits_several_tokens_a_step(router: grpc.aio.Channel) -> None:
    """An edit takes fewer denoising steps than it has tokens."""
    edit = next(one for one in DEMO_REQUESTS if one.request.task == inference.TASK_TEXT_EDITING)
    usage = (await InferenceServiceStub(router).Generate(edit.request, timeout=60)).usage
    assert 0 < usage.denoise_steps < usage.completion_tokens


async def test_seed_repeats_the_answer(router: grpc.aio.Channel) -> None:
    """The seed that an answer names gives the same text again."""
    request = inference.GenerateRequest(
        task=inference.TASK_TEXT_GENERATION,
        prompt="Write a short story about a fox and a lamp.",
        sampling=inference.Sampling(temperature=1.0),
    )
    stub = InferenceServiceStub(router)
    first = await stub.Generate(request, timeout=60)
    request.sampling.seed = first.seed
    assert (await stub.Generate(request, timeout=60)).text == first.text
