"""Reasoning over a real socket: apart from the answer, counted, shown to who asks for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from braid.inference.v1 import inference_pb2 as pb
from tests.generation.serving import Serving, serving

THOUGHT, ANSWER = "7 plus 14 is twenty-one 世", "21 it is"
ANSWERS = {
    "think": f"<think>{THOUGHT}</think>{ANSWER}",
    "twice": "<think>a</think>b<think>c</think>d",
    "do not": f"<think></think>{ANSWER}",
}
TOKENS = len(THOUGHT.encode())


@pytest.fixture
async def worker(folder: Path) -> AsyncIterator[Serving]:
    """A worker whose model reasons before it answers."""
    async with serving(folder, ANSWERS) as worker:
        yield worker


async def both(worker: Serving, **fields: Any) -> tuple[str, pb.Finished]:
    """Text and end of a call, after a look that unary and streamed answers are one."""
    response = await worker.stub.Generate(pb.GenerateRequest(**fields))
    pieces, finished = await worker.pieces(**fields)
    assert "".join(pieces) == response.text
    assert finished.thinking == response.thinking
    assert finished.usage.thinking_tokens == response.usage.thinking_tokens
    assert finished.finish_reason == response.finish_reason
    return response.text, finished


@pytest.mark.parametrize("include", [False, True])
async def test_reasoning_is_apart_and_counted(worker: Serving, *, include: bool) -> None:
    """The text is the answer alone; the reasoning comes at the end, only where it was asked for."""
    text, finished = await both(worker, prompt="think", thinking=pb.Thinking(include=include))
    assert text == ANSWER
    assert finished.thinking == (THOUGHT if include else "")
    assert finished.usage.thinking_tokens == TOKENS + 2
    assert finished.usage.completion_tokens == TOKENS + 2 + len(ANSWER)


async def test_every_stretch_of_reasoning_is_hidden(worker: Serving) -> None:
    """A model that starts to reason again is not heard meanwhile."""
    text, finished = await both(worker, prompt="twice", thinking=pb.Thinking(include=True))
    assert (text, finished.thinking, finished.usage.thinking_tokens) == ("bd", "ac", 6)


@pytest.mark.parametrize("most", [1, 9, TOKENS, TOKENS + 1])
async def test_reasoning_that_is_cut_is_no_answer(worker: Serving, most: int) -> None:
    """Where max_new_tokens ends it, there is no text, and the end says so."""
    sampling, thinking = pb.Sampling(max_new_tokens=most), pb.Thinking(include=True)
    text, finished = await both(worker, prompt="think", sampling=sampling, thinking=thinking)
    assert text == ""
    assert THOUGHT.startswith(finished.thinking)
    assert finished.finish_reason == pb.FINISH_REASON_LENGTH
    assert finished.usage.thinking_tokens == finished.usage.completion_tokens == most


async def test_reasoning_asked_for_begins_in_the_prompt(worker: Serving) -> None:
    """Its opening mark is the prompt's then, and no token of the answer."""
    thinking = pb.Thinking(enabled=True, include=True)
    text, finished = await both(worker, prompt="think", thinking=thinking)
    assert (text, finished.thinking) == (ANSWER, THOUGHT)
    assert finished.usage.thinking_tokens == TOKENS + 1


async def test_reasoning_not_wanted_is_closed_in_the_prompt(worker: Serving) -> None:
    """The answer begins at once."""
    text, finished = await both(worker, prompt="do not", thinking=pb.Thinking(enabled=False))
    assert (text, finished.usage.thinking_tokens) == (ANSWER, 0)


async def test_reasoning_ends_at_its_limit(worker: Serving) -> None:
    """After max_tokens the closing mark comes, whatever the model would say."""
    thinking = pb.Thinking(enabled=True, max_tokens=6, include=True)
    _, finished = await both(worker, prompt="think", thinking=thinking)
    assert finished.thinking == THOUGHT[:6]
    assert finished.usage.thinking_tokens == 6 + 1


async def test_stop_texts_are_looked_for_in_the_answer_alone(worker: Serving) -> None:
    """One that only the reasoning holds ends nothing."""
    for stop, expected in (("plus", ANSWER), (" is", "21 it")):
        text, _ = await both(worker, prompt="think", sampling=pb.Sampling(stop=[stop]))
        assert text == expected


async def test_reasoning_is_in_no_draft(diffusion_checkpoint: Path) -> None:
    """What a draft shows is the beginning of the answer."""
    async with serving(diffusion_checkpoint, ANSWERS) as worker:
        message = pb.GenerateRequest(prompt="think", diffusion=pb.Diffusion(drafts=True))
        sent = ""
        async for event in worker.stub.GenerateStream(message):
            sent += event.delta.text
            assert ANSWER.startswith(sent + event.draft.text)
        assert sent == ANSWER


async def test_reasoning_is_not_logged(worker: Serving) -> None:
    """Not even where the caller gets to see it."""
    with structlog.testing.capture_logs() as logs:
        await both(worker, prompt="think", thinking=pb.Thinking(include=True))
    assert logs
    assert "plus" not in repr(logs)
