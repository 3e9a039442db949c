"""The benchmark's references, on a tiny random model."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from transformers import PreTrainedModel

from tests.benchmarks.references import Reference
from tests.diffusion_worker.slow_decoder import SlowDecoder
from tests.generation.tiny import BLOCK, EOS, MASK, PLAN, decoder, job, prompt

PROMPTS = [prompt(length, length) for length in (3, BLOCK, 11, 2 * BLOCK, 45)]
MOST = 3 * BLOCK


@pytest.fixture(scope="module")
def endless() -> PreTrainedModel:
    """Never ends an answer: when an end token may stand, references and plain decoder differ."""
    model = decoder()
    model.lm_head.weight.data[EOS] = 0
    return model


@pytest.mark.parametrize("strategy", ["threshold", "static_quota"])
def test_same_tokens_as_the_slow_decoder(endless: PreTrainedModel, strategy: str) -> None:
    """With a cache or without one, the references follow the strategy of their name."""
    reference = Reference(endless, BLOCK, MASK, EOS)
    decode = {
        "threshold": partial(reference.cached, threshold=PLAN.confidence_threshold),
        "static_quota": partial(reference.uncached, steps=PLAN.max_steps),
    }[strategy]
    plan = replace(PLAN, strategy=strategy, edit_threshold=1.0)
    for asked in (job(ids, MOST - len(ids) % BLOCK, denoising=plan) for ids in PROMPTS):
        answer = SlowDecoder(endless, asked, shift=1).answer()
        assert decode([asked.prompt_ids], asked.max_new_tokens) == [answer]


def test_batch_mates_change_nothing() -> None:
    """A padded batch of prompts of mixed length gives what each prompt gives alone."""
    reference = Reference(decoder(), BLOCK, MASK, EOS)
    for decode in (reference.cached, reference.uncached):
        assert decode(PROMPTS, MOST) == [decode([ids], MOST)[0] for ids in PROMPTS]
