"""Block diffusion over the slot cache, against the same decoding without one."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
from transformers import PreTrainedModel

from services.chassis.errors import InvalidRequest
from services.diffusion_worker.family import BlockDiffusion
from services.diffusion_worker.strategy import STRATEGIES
from services.generation.slot_model import SlotModel
from services.generation.types import FinishReason, Job
from services.generation.vocabulary import Vocabulary
from tests.diffusion_worker.slow_decoder import SlowDecoder
from tests.generation.decoding import Answer, decode, step
from tests.generation.tiny import BLOCK, EOS, MASK, PLAN, UNTHINK, VOCABULARY, decoder, job, prompt

SLOTS = 16
ENDLESS = replace(VOCABULARY, eos_id=-1)


@pytest.fixture(scope="module")
def module() -> PreTrainedModel:
    return decoder()


@pytest.fixture(scope="module")
def model(module: PreTrainedModel) -> SlotModel:
    return SlotModel(copy.deepcopy(module), slots=SLOTS, max_context=256)


def solve(
    model: SlotModel,
    *jobs: Job,
    shift: bool = True,
    chunk: int = 256,
    vocabulary: Vocabulary = VOCABULARY,
    rescore_last: bool = False,
) -> list[Answer]:
    family = BlockDiffusion(
        vocabulary, logit_shift=shift, prefill_chunk=chunk, rescore_last=rescore_last
    )
    return decode(model, family, jobs)


@pytest.mark.parametrize("shift", [True, False])
@pytest.mark.parametrize("edit_threshold", [1.0, 0.7, 0.3])
def test_same_tokens_as_the_slow_decoder(
    module: PreTrainedModel, model: SlotModel, *, shift: bool, edit_threshold: float
) -> None:
    """Cache, fused forwards and chunks change nothing in what is decoded."""
    plan = replace(PLAN, edit_threshold=edit_threshold)
    edited = recommitted = False
    for number, length in enumerate((3, BLOCK, 11, 2 * BLOCK, 45)):
        asked = job(prompt(length, number), 30, denoising=plan)
        answer = solve(model, asked, shift=shift, chunk=16)[0]
        assert answer.tokens == SlowDecoder(module, asked, shift=int(shift)).answer()
        recommitted |= answer.figures.generating_forwards > answer.figures.denoise_steps
        untouched = replace(asked, denoising=replace(plan, edit_threshold=1.0))
        edited |= solve(model, untouched, shift=shift)[0].tokens != answer.tokens
    assert edited == recommitted == (edit_threshold < 1)


@pytest.mark.parametrize("shift", [True, False])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_sees_what_the_slow_decoder_sees(
    module: PreTrainedModel, model: SlotModel, strategy: str, *, shift: bool
) -> None:
    """Entropies, rivals and luck reach the strategy as they are; blocks may be of any length."""
    for number, block_length in enumerate((4, BLOCK, 2 * BLOCK)):
        plan = replace(
            PLAN, strategy=strategy, max_steps=5, block_length=block_length, edit_threshold=1
        )
        asked = job(prompt(11, number), 30, denoising=plan)
        answer = solve(model, asked, shift=shift)[0]
        assert answer.tokens == SlowDecoder(module, asked, shift=int(shift)).answer()


@pytest.mark.parametrize("shift", [True, False])
def test_the_last_block_can_be_rescored(
    module: PreTrainedModel, model: SlotModel, *, shift: bool
) -> None:
    """One more forward edits the last block too, and never adds tokens beyond the limit."""
    plan = replace(PLAN, edit_threshold=0.3)
    edited = False
    for number in range(12):
        asked = job(prompt(4 + 3 * number, number), 14, denoising=plan)
        answer = solve(model, asked, shift=shift, rescore_last=True)[0]
        slow = SlowDecoder(module, asked, shift=int(shift), rescore_last=True)
        assert answer.tokens == slow.answer()
        assert len(answer.tokens) <= 14
        edited |= answer.tokens != solve(model, asked, shift=shift)[0].tokens
    assert edited


def test_drawn_tokens_are_not_edited(model: SlotModel) -> None:
    """With a temperature the draw stands, even where the model would rather have another token."""
    plans = [replace(PLAN, edit_threshold=threshold) for threshold in (0.1, 1.0)]
    first, second = solve(model, *(job(temperature=1.0, denoising=plan) for plan in plans))
    assert first.tokens == second.tokens


def test_a_row_does_not_depend_on_its_batch_mates(model: SlotModel) -> None:
    """Jobs of different lengths, plans and temperatures give alone what they give together."""
    jobs = [
        job(
            prompt(3 + 5 * number, number),
            9 + 4 * number,
            temperature=0.7 * (number // len(STRATEGIES)),
            top_p=0.95,
            seed=number,
            denoising=replace(PLAN, max_steps=2 + number % 3 * 3, strategy=strategy),
        )
        for number, strategy in enumerate([*STRATEGIES, *STRATEGIES])
    ]
    alone = [solve(model, one)[0].tokens for one in jobs]
    assert [answer.tokens for answer in solve(model, *jobs)] == alone


@pytest.mark.parametrize(("strategy", "temperature"), [("threshold", 1.0), ("random", 0.0)])
def test_seeds_decide(model: SlotModel, strategy: str, temperature: float) -> None:
    """Where tokens or places are drawn, one seed gives one answer, another one another."""
    plan = replace(PLAN, strategy=strategy)
    asked = job(max_new_tokens=40, temperature=temperature, denoising=plan)
    first, again, other = solve(model, asked, asked, replace(asked, seed=8))
    assert first.tokens == again.tokens != other.tokens


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != "random"])
def test_nothing_else_is_left_to_chance(model: SlotModel, strategy: str) -> None:
    """Without a temperature the seed changes nothing, but where places are drawn."""
    asked = job(max_new_tokens=40, denoising=replace(PLAN, strategy=strategy))
    first, other = solve(model, asked, replace(asked, seed=8))
    assert first.tokens == other.tokens


@pytest.mark.parametrize("max_new_tokens", [1, 5, BLOCK, 13, 33])
def test_never_more_tokens_than_asked(model: SlotModel, max_new_tokens: int) -> None:
    """The answer has exactly max_new_tokens where no end comes, whatever the block length."""
    answer = solve(model, job(max_new_tokens=max_new_tokens), vocabulary=ENDLESS)[0]
    assert answer.finish is FinishReason.LENGTH
    assert len(answer.tokens) == max_new_tokens


@pytest.mark.parametrize("max_steps", [1, 2, 3, BLOCK])
def test_blocks_end_within_max_steps(model: SlotModel, max_steps: int) -> None:
    """No block takes more denoising steps than allowed, and forced tokens are counted."""
    plan = replace(PLAN, max_steps=max_steps, confidence_threshold=1.0, edit_threshold=1)
    answer = solve(model, job(prompt(BLOCK), 3 * BLOCK, denoising=plan), vocabulary=ENDLESS)[0]
    assert answer.figures.denoise_steps == 3 * max_steps
    assert (answer.figures.forced_commits > 0) == (max_steps < BLOCK)


def test_forwards_are_fused(model: SlotModel) -> None:
    """Prefill and commit forwards cost nothing of their own: as many forwards as steps."""
    answer = solve(model, job(max_new_tokens=40, denoising=replace(PLAN, edit_threshold=1)))[0]
    assert answer.figures.forward_passes == answer.figures.denoise_steps
    assert answer.figures.generating_forwards == answer.figures.denoise_steps


def test_long_prompts_are_prefilled_in_chunks(model: SlotModel) -> None:
    """A prompt beyond the chunk takes forwards that generate nothing."""
    answer = solve(model, job(prompt(100), 8), chunk=32)[0]
    assert answer.figures.forward_passes - answer.figures.generating_forwards == 2


def test_mask_token_never_comes_out(module: PreTrainedModel) -> None:
    """A model that wants to say the mask token cannot, and still ends."""
    eager = copy.deepcopy(module)
    eager.lm_head.weight.data[MASK] = 40 * eager.lm_head.weight.data.mean(0)
    eager.lm_head.weight.data[MASK + 9] = -eager.lm_head.weight.data[MASK]
    answer = solve(SlotModel(eager, slots=1, max_context=64), job(max_new_tokens=32))[0]
    assert MASK not in answer.tokens


def test_prompt_tokens_that_look_masked_are_left_alone(model: SlotModel) -> None:
    """Positions of the prompt are never denoised."""
    asked = job((*prompt(9), MASK, MASK), 8)
    answer = solve(model, asked)[0]
    assert 1 <= len(answer.tokens) <= 8


def test_ends_at_the_first_resolved_end_token(module: PreTrainedModel) -> None:
    """The answer stops before its end token, in the step that resolves it."""
    brief = copy.deepcopy(module)
    brief.lm_head.weight.data[EOS] *= 3
    answers = solve(
        SlotModel(brief, slots=SLOTS, max_context=256),
        *(job(prompt(11, number), 60) for number in range(SLOTS)),
    )
    stopped = [answer for answer in answers if answer.finish is FinishReason.STOP]
    assert stopped
    for answer in stopped:
        assert EOS not in answer.tokens
        last_block = answer.blocks[-1] if answer.blocks else 0
        assert answer.figures.denoise_steps <= (last_block + 2) * BLOCK


def test_blocks_are_numbered_from_the_answers_first(model: SlotModel) -> None:
    """Pieces carry the block they end in, on the document's grid."""
    answer = solve(model, job(max_new_tokens=16), vocabulary=ENDLESS)[0]
    assert answer.blocks == [0] * 5 + [1] * 8 + [2] * 3


@pytest.mark.parametrize("limit", [0, 3, 5, 6, 20])
def test_reasoning_is_closed_at_its_limit(model: SlotModel, limit: int) -> None:
    """Reasoning that the prompt opened is closed after exactly so many tokens."""
    asked = job(max_new_tokens=40, thinking=True, max_thinking_tokens=limit)
    answer = solve(model, asked, vocabulary=ENDLESS)[0]
    assert UNTHINK in answer.tokens[: limit + 1]


def test_cut_hands_over_what_is_decided_from_the_left(model: SlotModel) -> None:
    """An answer cut in the middle of a block keeps the decided run, without masks."""
    family = BlockDiffusion(VOCABULARY, logit_shift=True)
    plan = replace(PLAN, confidence_threshold=1.0, edit_threshold=1)
    sequence = family.open(job(denoising=plan))
    assert sequence.cut().pieces == ()
    tokens = [token for piece in sequence.cut().pieces for token in piece.tokens]
    assert MASK not in tokens


def test_logits_are_computed_where_they_are_needed() -> None:
    """Without edits only masked answer positions are asked about, never those past the limit."""
    plan = replace(PLAN, edit_threshold=1)
    sequence = BlockDiffusion(VOCABULARY, logit_shift=False).open(
        job(prompt(11), 3, denoising=plan)
    )
    assert sequence.rows().wanted == [11, 12, 13]


@pytest.mark.parametrize(
    ("plan", "field"),
    [
        (None, "strategy"),
        (replace(PLAN, strategy="magic"), "strategy"),
        (replace(PLAN, block_length=12), "block_length"),
    ],
)
def test_plans_it_cannot_follow_are_refused(plan: object, field: str) -> None:
    """Without a plan, or with one it cannot follow, a sequence does not start."""
    with pytest.raises(InvalidRequest, match=field):
        BlockDiffusion(VOCABULARY, logit_shift=True).open(job(denoising=plan))


def test_few_forwards_left_settle_more_in_each(model: SlotModel) -> None:
    """A sequence that is told how many forwards there is time for needs no more than those."""
    careful = replace(PLAN, confidence_threshold=1.0)
    asked = job(prompt(BLOCK), 3 * BLOCK, denoising=careful)
    family = BlockDiffusion(ENDLESS, logit_shift=True)
    assert decode(model, family, [asked])[0].figures.forward_passes > 3 * BLOCK - 3
    for forwards in (3, 6, 12):
        sequence = family.open(asked)
        tokens: list[int] = []
        for left in range(forwards, 0, -1):
            sequence.forwards_left = left
            progress = step(model, sequence)
            tokens += [token for piece in progress.pieces for token in piece.tokens]
        assert progress.finish is FinishReason.LENGTH
        assert len(tokens) == 3 * BLOCK
        assert sequence.figures.forced_commits > 0
        assert sequence.figures.blocks == 3
