"""Runs a model's real paths before anybody waits for them."""

from __future__ import annotations

import asyncio
import time

from services.generation.answering import Answering, gathered
from services.generation.card import ModelCard
from services.generation.limits import Limits
from services.generation.planner import Planner
from services.generation.types import Infill, Input, Prompt, Request, Sampling

MAX_NEW_TOKENS = 32
ROUNDS = 2
"""Times that the prompts run alone: the first allocates, the second shows what is left."""


async def warm_up(card: ModelCard, planner: Planner, answering: Answering, limits: Limits) -> float:
    """Answers the card's prompts alone and in a full batch; returns the seconds it took.

    Raises what a call would raise: a model that cannot answer must not serve.
    """
    started = time.monotonic()
    inputs = _inputs(card)
    for _ in range(ROUNDS):
        for source in inputs:
            await _answer(source, planner, answering, limits)
    full = [inputs[index % len(inputs)] for index in range(limits.max_batch_size)]
    await asyncio.gather(*(_answer(source, planner, answering, limits) for source in full))
    return time.monotonic() - started


def _inputs(card: ModelCard) -> list[Input]:
    prompts: list[Input] = [Prompt(text) for text in card.warmup]
    if card.fills_gaps:
        prompts.append(Infill(card.warmup[0], card.warmup[-1]))
    return prompts


async def _answer(source: Input, planner: Planner, answering: Answering, limits: Limits) -> None:
    request = Request(
        request_id="warm-up",
        task="TASK_UNSPECIFIED",
        input=source,
        arrived=time.monotonic(),
        sampling=Sampling(max_new_tokens=min(MAX_NEW_TOKENS, limits.max_new_tokens), seed=0),
    )
    await gathered(answering.events(planner.plan(request, limits), limits))
