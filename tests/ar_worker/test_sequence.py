"""Next-token generation over the slot cache, against transformers' own generate."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch
from transformers import PreTrainedModel

from services.ar_worker.sequence import NextToken
from services.generation.slot_model import SlotModel
from services.generation.types import FinishReason, Job
from tests.generation.decoding import Answer, decode
from tests.generation.tiny import (
    ARCHITECTURES,
    EOS,
    MASK,
    UNTHINK,
    VOCABULARY,
    decoder,
    job,
    prompt,
)


@pytest.fixture(scope="module")
def model() -> SlotModel:
    return SlotModel(decoder(), slots=8, max_context=256)


def solve(model: SlotModel, *jobs: Job, chunk: int = 256) -> list[Answer]:
    return decode(model, NextToken(VOCABULARY, prefill_chunk=chunk), jobs)


def generate(module: PreTrainedModel, asked: Job) -> list[int]:
    """What transformers generates greedily, without the end token."""
    ids = torch.tensor([asked.prompt_ids])
    out = module.generate(  # type: ignore[operator]  # transformers
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=asked.max_new_tokens,
        do_sample=False,
        suppress_tokens=[MASK],
        pad_token_id=EOS,
    )
    tokens: list[int] = out[0, ids.shape[1] :].tolist()
    return tokens[: tokens.index(EOS)] if EOS in tokens else tokens


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_equals_transformers_generate(architecture: str) -> None:
    """Greedy answers are those of transformers, chunked prefill and batch mates or not."""
    module = decoder(architecture)
    model = SlotModel(copy.deepcopy(module), slots=4, max_context=128)
    jobs = [job(prompt(length, length), 24) for length in (1, 17, 40, 50)]
    expected = [generate(module, asked) for asked in jobs]
    assert [answer.tokens for answer in solve(model, *jobs, chunk=16)] == expected


def test_seeds_decide(model: SlotModel) -> None:
    """The same seed gives the same answer alone and in company, another one another."""
    asked = job(max_new_tokens=30, temperature=1.0, top_k=20)
    alone = solve(model, asked)[0].tokens
    together = solve(model, job(prompt(30), 9), asked, job(prompt(2), seed=8, temperature=1.0))
    assert together[1].tokens == alone
    assert solve(model, job(max_new_tokens=30, temperature=1.0, seed=8))[0].tokens != alone


@pytest.mark.parametrize("max_new_tokens", [1, 2, 20])
def test_never_more_tokens_than_asked(model: SlotModel, max_new_tokens: int) -> None:
    """The answer ends with reason LENGTH at max_new_tokens."""
    endless = NextToken(replace(VOCABULARY, eos_id=-1))
    answer = decode(model, endless, [job(max_new_tokens=max_new_tokens)])[0]
    assert (len(answer.tokens), answer.finish) == (max_new_tokens, FinishReason.LENGTH)


def test_one_token_a_forward(model: SlotModel) -> None:
    """The forward that ends the prefill gives the first token; chunks before it give none."""
    endless = NextToken(replace(VOCABULARY, eos_id=-1), prefill_chunk=16)
    answer = decode(model, endless, [job(prompt(40), 10)])[0]
    assert answer.figures.forward_passes == 12
    assert answer.figures.generating_forwards == 10
    assert answer.figures.denoise_steps == 0


@pytest.mark.parametrize("limit", [0, 3])
def test_reasoning_is_closed_at_its_limit(model: SlotModel, limit: int) -> None:
    """Reasoning that the prompt opened is closed after exactly so many tokens."""
    answer = solve(model, job(max_new_tokens=20, thinking=True, max_thinking_tokens=limit))[0]
    assert UNTHINK in answer.tokens[: limit + 1]
