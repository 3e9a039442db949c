"""Bidirectional masked diffusion in slots, against the same decoding by transformers alone."""

from __future__ import annotations

import copy
from collections.abc import Sequence as Many
from dataclasses import replace

import pytest
from torch import Tensor
from transformers import PreTrainedModel

from services.diffusion_worker.canvas import Canvas
from services.diffusion_worker.family import MaskedDiffusion
from services.generation.sequence import Rows
from services.generation.slot_model import SlotModel
from services.generation.types import FinishReason, Job
from tests.diffusion_worker.whole_decoder import WholeDecoder
from tests.generation.decoding import Answer, decode
from tests.generation.tiny import (
    BLOCK,
    EOS,
    MASK,
    PLAN,
    UNTHINK,
    VOCABULARY,
    decoder,
    job,
    prompt,
)

SLOTS = 8
ENDLESS = replace(VOCABULARY, eos_id=-1)
SUFFIX = prompt(7, 5)


@pytest.fixture(scope="module", params=["qwen3", "qwen2", "llama", "qwen3_moe"])
def architecture(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def module(architecture: str) -> PreTrainedModel:
    return decoder(architecture)


@pytest.fixture(scope="module")
def model(module: PreTrainedModel) -> CountingModel:
    return CountingModel(copy.deepcopy(module), slots=SLOTS, max_context=256)


class CountingModel(SlotModel):
    """A slot model that counts the rows it computes."""

    rows = 0

    def forward(self, batch: Many[tuple[int, Rows]]) -> Tensor:
        """The real forward."""
        self.rows += sum(len(rows.tokens) for _, rows in batch)
        return super().forward(batch)


def solve(
    model: SlotModel, *jobs: Job, shift: bool = True, prefix_cache: bool = False
) -> list[Answer]:
    family = MaskedDiffusion(VOCABULARY, logit_shift=shift, prefix_cache=prefix_cache)
    return decode(model, family, jobs)


def questions(edit_threshold: float) -> list[Job]:
    """Prompts of several lengths, every second one with text behind the answer."""
    plan = replace(PLAN, edit_threshold=edit_threshold)
    return [
        job(prompt(length, number), 21, denoising=plan, suffix_ids=SUFFIX[: 7 * (number % 2)])
        for number, length in enumerate((1, 3, BLOCK, 11, 29))
    ]


@pytest.mark.parametrize("shift", [True, False])
@pytest.mark.parametrize("edit_threshold", [1.0, 0.3])
@pytest.mark.parametrize("prefix_cache", [False, True])
def test_same_tokens_as_transformers_alone(
    module: PreTrainedModel,
    model: CountingModel,
    edit_threshold: float,
    *,
    shift: bool,
    prefix_cache: bool,
) -> None:
    """Slots change nothing in what is decoded, exactly or with the prefix kept."""
    for asked in questions(edit_threshold):
        answer = solve(model, asked, shift=shift, prefix_cache=prefix_cache)[0]
        reference = WholeDecoder(module, asked, shift=int(shift), keeps_prefix=prefix_cache)
        assert answer.tokens == reference.answer()


def test_a_kept_prefix_saves_rows_and_is_not_exact(model: CountingModel) -> None:
    """The prefix cache is an option because it computes less and something else."""
    asked = [job(prompt(29, number), 40) for number in range(SLOTS)]
    before = model.rows
    exact = [answer.tokens for answer in solve(model, *asked)]
    between = model.rows
    kept = [answer.tokens for answer in solve(model, *asked, prefix_cache=True)]
    assert model.rows - between < between - before
    assert kept != exact


def test_rows_that_were_not_computed_are_not_kept(model: CountingModel) -> None:
    """A sequence that is asked for its rows and left out of the forward still asks for all."""
    family = MaskedDiffusion(VOCABULARY, logit_shift=True, prefix_cache=True)
    sequence = family.open(job())
    assert sequence.rows().start == sequence.rows().start == 0


@pytest.mark.parametrize("prefix_cache", [False, True])
def test_a_row_does_not_depend_on_its_batch_mates(
    model: CountingModel, *, prefix_cache: bool
) -> None:
    """Jobs of different lengths, suffixes and temperatures give alone what they give together."""
    jobs = [
        job(
            prompt(3 + 5 * number, number),
            9 + 4 * number,
            temperature=0.7 * (number % 2),
            seed=number,
            suffix_ids=prompt(3 * (number % 3), number),
        )
        for number in range(SLOTS)
    ]
    alone = [solve(model, one, prefix_cache=prefix_cache)[0].tokens for one in jobs]
    together = solve(model, *jobs, prefix_cache=prefix_cache)
    assert [answer.tokens for answer in together] == alone


def test_what_stands_behind_the_answer_counts(model: CountingModel) -> None:
    """The same prompt before another suffix is continued in another way."""
    first, second = (job(suffix_ids=prompt(9, number)) for number in (1, 2))
    assert solve(model, first)[0].tokens != solve(model, second)[0].tokens


@pytest.mark.parametrize("max_new_tokens", [1, 5, BLOCK, 13, 33])
def test_never_more_tokens_than_asked(model: CountingModel, max_new_tokens: int) -> None:
    """Exactly max_new_tokens where no end comes; before a suffix that is the whole gap."""
    family = MaskedDiffusion(ENDLESS, logit_shift=False)
    for suffix, reason in ((SUFFIX, FinishReason.STOP), ((), FinishReason.LENGTH)):
        [answer] = decode(model, family, [job(max_new_tokens=max_new_tokens, suffix_ids=suffix)])
        assert answer.finish is reason
        assert len(answer.tokens) == max_new_tokens
        assert MASK not in answer.tokens


def test_ends_at_the_first_resolved_end_token(module: PreTrainedModel) -> None:
    """The answer stops before its end token, however long its canvas is."""
    brief = copy.deepcopy(module)
    brief.lm_head.weight.data[EOS] *= 3
    model = SlotModel(brief, slots=SLOTS, max_context=256)
    answers = solve(model, *(job(prompt(11, number), 60) for number in range(SLOTS)))
    stopped = [answer for answer in answers if answer.finish is FinishReason.STOP]
    assert stopped
    assert all(EOS not in answer.tokens for answer in stopped)


def test_reasoning_is_closed_at_its_limit(model: CountingModel) -> None:
    """Reasoning that the prompt opened is closed after exactly so many tokens."""
    asked = job(max_new_tokens=40, thinking=True, max_thinking_tokens=11)
    [answer] = decode(model, MaskedDiffusion(ENDLESS, logit_shift=True), [asked])
    assert UNTHINK in answer.tokens[:12]


def test_blocks_start_at_the_answer() -> None:
    """However long the prompt is, the first block holds block_length answer tokens."""
    canvas = Canvas(prompt(11), 20, BLOCK, MASK, from_answer=True)
    assert (canvas.open, canvas.first, canvas.end) == (11, 11, 11 + BLOCK)
    for position in range(11, 11 + BLOCK):
        canvas.place(position, 5)
    assert canvas.open_next()
    assert [(block, len(tokens)) for block, tokens in canvas.pieces(11, 22)] == [(0, 8), (1, 3)]
