"""Runs a model's real paths before anybody waits for them, and tests what it answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass

from services.chassis.process import StartFailure
from services.generation.answering import gathered
from services.generation.card import ModelCard
from services.generation.reception import ServedModel
from services.generation.types import Constraint, Infill, Input, Prompt, Request, Sampling

MAX_NEW_TOKENS = 32
ROUNDS = 2
"""Times that the prompts run alone: the first allocates, the second shows what is left."""
SCHEMA = '{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}'
"""Compiled and kept to once, so that no caller waits for the tables of the vocabulary."""


class SelfTestFailed(StartFailure):
    """The model does not answer a golden prompt of its card as it should."""


@dataclass(frozen=True, slots=True)
class WarmUp:
    """Seconds of the whole warm-up, of its first answer and of the same answer at its end."""

    total_s: float
    first_s: float
    last_s: float


async def warm_up(model: ServedModel) -> WarmUp:
    """Answers the card's prompts alone, a schema, and batches of each size in use.

    Raises what a call would raise: a model that cannot answer must not serve.
    """
    started = time.monotonic()
    inputs = _inputs(model.card)
    first_s = await _timed(inputs[0], model)
    for _ in range(ROUNDS):
        for source in inputs:
            await _answer(source, model)
    if "json_schema" in model.card.capabilities and model.limits.max_new_tokens >= MAX_NEW_TOKENS:
        await _answer(inputs[0], model, Constraint("json_schema", SCHEMA))
    for size in batch_sizes(model.limits.max_batch_size):
        batch = [inputs[index % len(inputs)] for index in range(size)]
        await asyncio.gather(*(_answer(source, model) for source in batch))
    last_s = await _timed(inputs[0], model)
    return WarmUp(time.monotonic() - started, first_s, last_s)


async def self_test(model: ServedModel) -> None:
    """Raises SelfTestFailed naming the golden prompts, by number, that are answered otherwise."""
    golden = model.card.self_test
    texts = [
        await _answer(Prompt(one.prompt), model, max_new_tokens=one.max_new_tokens)
        for one in golden
    ]
    pairs = zip(golden, texts, strict=True)
    wrong = [str(number) for number, (one, text) in enumerate(pairs, 1) if text != one.answer]
    if wrong:
        raise SelfTestFailed(
            f"the self-test failed: golden prompts {', '.join(wrong)} of {len(golden)}"
            " are not answered as the card says"
        )


def batch_sizes(most: int) -> Iterator[int]:
    """2, 4, 8, ... and the most that share a forward."""
    size = 2
    while size < most:
        yield size
        size *= 2
    yield most


def _inputs(card: ModelCard) -> list[Input]:
    prompts: list[Input] = [Prompt(text) for text in card.warmup]
    if card.fills_gaps:
        prompts.append(Infill(card.warmup[0], card.warmup[-1]))
    return prompts


async def _timed(source: Input, model: ServedModel) -> float:
    began = time.monotonic()
    await _answer(source, model)
    return time.monotonic() - began


async def _answer(
    source: Input,
    model: ServedModel,
    constraint: Constraint | None = None,
    max_new_tokens: int = MAX_NEW_TOKENS,
) -> str:
    limits = model.limits
    request = Request(
        request_id="warm-up",
        task="TASK_UNSPECIFIED",
        input=source,
        arrived=time.monotonic(),
        sampling=Sampling(max_new_tokens=min(max_new_tokens, limits.max_new_tokens), seed=0),
        constraint=constraint,
    )
    plan = await asyncio.to_thread(model.planner.plan, request, limits)
    text, _, _ = await gathered(model.answering.events(plan, limits))
    return text
