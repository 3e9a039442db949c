"""Decoding strategies: what holds for each of them, and an example of each by hand."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from services.chassis.strategies import PARAMETER_OF
from services.diffusion_worker.commit import commit
from services.diffusion_worker.family import BlockDiffusion
from services.diffusion_worker.sequence import MAX_RECOMMITS
from services.diffusion_worker.strategy import STRATEGIES, Guess
from services.generation.sequence import Rows
from services.generation.types import DenoisingPlan
from tests.diffusion_worker.guesses import guesses, sure
from tests.generation.decoding import decode
from tests.generation.tiny import BLOCK, EOS, MASK, PLAN, VOCABULARY, VOCABULARY_SIZE, job, prompt

PLANS = st.builds(
    replace,
    st.just(PLAN),
    strategy=st.sampled_from(list(STRATEGIES)),
    confidence_threshold=st.floats(0, 1, exclude_min=True),
    factor=st.floats(0, 64, exclude_min=True),
    entropy_bound=st.floats(0, 64),
)
GUESSES = guesses()


def test_strategies_are_those_of_the_contract() -> None:
    """Whatever a call or a group may name can be followed, and nothing else."""
    assert list(STRATEGIES) == list(PARAMETER_OF)


@given(guessed=GUESSES, plan=PLANS, steps=st.integers(-2, 40), settled=st.booleans())
def test_every_step_makes_progress(
    guessed: list[Guess], plan: DenoisingPlan, steps: int, *, settled: bool
) -> None:
    """At least one position is decided, each once, and only positions that are masked."""
    chosen = commit(guessed, plan, steps, EOS, first_is_settled=settled).chosen
    assert chosen
    assert list(chosen) == sorted(set(chosen))
    assert 0 <= chosen[0] <= chosen[-1] < len(guessed)


@given(guessed=GUESSES, plan=PLANS, steps=st.integers(-2, 40), settled=st.booleans())
def test_an_end_token_has_nothing_open_to_its_left(
    guessed: list[Guess], plan: DenoisingPlan, steps: int, *, settled: bool
) -> None:
    """If an end token stands, everything before it does and nothing after it."""
    chosen = commit(guessed, plan, steps, EOS, first_is_settled=settled).chosen
    ends = [i for i in chosen if guessed[i].token == EOS]
    assert len(ends) <= 1
    if ends:
        assert chosen == tuple(range(ends[0] + 1))


@given(data=st.data(), plan=PLANS, length=st.integers(1, 16), steps=st.integers(1, 20))
def test_a_block_ends_within_its_steps(
    data: st.DataObject, plan: DenoisingPlan, length: int, steps: int
) -> None:
    """The block or the answer is over in that many steps, whatever is guessed in each."""
    for step in range(steps):
        guessed = data.draw(guesses(min_size=length, max_size=length))
        chosen = commit(guessed, plan, steps - step, EOS).chosen
        if any(guessed[i].token == EOS for i in chosen):
            return
        length -= len(chosen)
        if not length:
            return
    pytest.fail("the block is still open")


@pytest.mark.parametrize("strategy", ["static_quota", "random"])
@given(data=st.data(), length=st.integers(1, 16), steps=st.integers(1, 20), settled=st.booleans())
def test_a_quota_takes_exactly_its_steps(
    strategy: str, data: st.DataObject, length: int, steps: int, *, settled: bool
) -> None:
    """Without a bar a block takes all its steps, or one a token, and no commit is forced."""
    plan, taken, left = replace(PLAN, strategy=strategy), 0, length
    while left:
        guessed = data.draw(guesses(4, min_size=left, max_size=left))
        decision = commit(guessed, plan, steps - taken, EOS, first_is_settled=settled)
        assert decision.forced == 0
        left -= len(decision.chosen)
        taken += 1
    assert taken == min(steps, length)


@dataclass(frozen=True)
class BabblingModel:
    """Says anything, most of all the mask; at some positions nothing that is a number."""

    noise: torch.Generator
    poison: bool

    def forward(self, batch: list[tuple[int, Rows]]) -> Tensor:
        """Logits of the wanted rows."""
        rows = sum(len(rows.wanted) for _, rows in batch)
        logits = torch.randn(rows, VOCABULARY_SIZE, generator=self.noise) * 4
        logits[:, MASK] = 99.0
        if self.poison:
            logits[::3, 7] = torch.inf
        return logits


@pytest.mark.parametrize("shift", [True, False])
@settings(max_examples=60)
@given(
    plan=PLANS,
    max_steps=st.integers(1, BLOCK + 2),
    lengths=st.tuples(st.integers(1, 20), st.integers(1, 30)),
    seed=st.integers(0, 999),
    poison=st.booleans(),
    temperature=st.sampled_from([0.0, 1.0]),
)
def test_answers_end_in_time_without_masks(
    plan: DenoisingPlan,
    max_steps: int,
    lengths: tuple[int, int],
    seed: int,
    temperature: float,
    *,
    shift: bool,
    poison: bool,
) -> None:
    """No mask is handed over, and no block takes more than its steps and its recommits."""
    prompt_length, most = lengths
    plan = replace(plan, max_steps=max_steps)
    asked = job(prompt(prompt_length), most, seed=seed, temperature=temperature, denoising=plan)
    model = BabblingModel(torch.Generator().manual_seed(seed), poison)
    [answer] = decode(model, BlockDiffusion(VOCABULARY, logit_shift=shift), [asked])
    blocks = -(-(prompt_length + most) // BLOCK) - prompt_length // BLOCK
    assert len(answer.tokens) <= most
    assert MASK not in answer.tokens
    assert answer.figures.denoise_steps <= blocks * max_steps
    assert answer.figures.forward_passes <= blocks * (max_steps + MAX_RECOMMITS)


def clear(*entropies: float) -> list[Guess]:
    return [Guess(4, 0.5, entropy=entropy) for entropy in entropies]


def ahead(*pairs: tuple[float, float]) -> list[Guess]:
    return [Guess(4, confidence, rival=rival) for confidence, rival in pairs]


def lucky(*luck: float) -> list[Guess]:
    return [Guess(4, 0.5, luck=share) for share in luck]


@pytest.mark.parametrize(
    ("strategy", "parameter", "guessed", "chosen"),
    [
        ("threshold", 0.9, sure(0.2, 0.9, 0.89, 0.95), {1, 3}),
        # 1 - 0.1 * 0.5^d: 0.9, 0.95, 0.975, 0.9875
        ("distance_threshold", 0.9, sure(0.9, 0.949, 0.976, 0.98), {0, 2}),
        ("frontier_run", 0.9, sure(0.95, 0.9, 0.89, 0.99), {0, 1}),
        ("frontier_run", 0.9, sure(0.3, 0.95), {0}),
        # (n + 1) (1 - p): 2 * 0.01, 3 * 0.1, 4 * 0.2, 5 * 0.25
        ("factor", 1.0, sure(0.8, 0.75, 0.99, 0.9), {0, 2, 3}),
        ("factor", 0.75, sure(0.8, 0.75, 0.99, 0.9), {2, 3}),
        ("factor", 1.5, sure(0.8, 0.75, 0.99, 0.9), {0, 1, 2, 3}),
        ("factor", 0.01, sure(0.8, 0.9), {1}),
        ("factor", 64, sure(math.nan, 0.9, 0.1), {1, 2}),
        # sums but for the last: 0, 0.25, 0.75, 1.75
        ("entropy_bound", 0.75, clear(2.0, 0.5, 1.0, 0.25), {1, 2, 3}),
        ("entropy_bound", 0.5, clear(2.0, 0.5, 1.0, 0.25), {1, 3}),
        ("entropy_bound", 0.0, clear(2.0, 0.5, 1.0, 0.25), {3}),
        ("entropy_bound", 64, clear(math.nan, 0.5, 1.0, math.inf), {1, 2, 3}),
        # leads: 0.625, 0.25, 0.5, 0.75
        ("margin", 0.5, ahead((0.75, 0.125), (0.5, 0.25), (0.75, 0.25), (0.875, 0.125)), {0, 3}),
        ("margin", 0.9, ahead((0.8, 0.2), (0.7, 0.05)), {1}),
        ("static_quota", None, sure(0.1, 0.9, 0.8, 0.95), {3}),
        ("random", None, lucky(0.3, 0.1, 0.7, 0.2), {2}),
    ],
)
def test_what_a_strategy_commits(
    strategy: str, parameter: float | None, guessed: list[Guess], chosen: set[int]
) -> None:
    """Each commits what its definition says, worked out by hand, with steps enough."""
    own = PARAMETER_OF[strategy]
    given_parameters: dict[str, Any] = {own: parameter} if own else {}
    plan = replace(PLAN, strategy=strategy, distance_decay=0.5, **given_parameters)
    assert set(commit(guessed, plan, len(guessed), EOS).chosen) == chosen


@pytest.mark.parametrize(
    ("strategy", "guessed", "chosen"),
    [
        ("threshold", sure(0.1, 0.2, 0.05, 0.3), {1, 3}),
        ("frontier_run", sure(0.1, 0.2, 0.05, 0.3), {0, 1}),
        ("entropy_bound", clear(3.0, 2.0, 4.0, 1.0), {1, 3}),
        ("margin", ahead((0.4, 0.3), (0.4, 0.1), (0.3, 0.2), (0.2, 0.0)), {1, 3}),
        ("static_quota", sure(0.1, 0.2, 0.05, 0.3), {1, 3}),
        ("random", lucky(0.1, 0.2, 0.05, 0.3), {1, 3}),
    ],
)
def test_who_comes_first_when_steps_run_out(
    strategy: str, guessed: list[Guess], chosen: set[int]
) -> None:
    """Where more has to be decided than clears the bar, each goes by its own order."""
    plan = replace(PLAN, strategy=strategy, confidence_threshold=0.9, entropy_bound=0.0)
    assert set(commit(guessed, plan, 2, EOS).chosen) == chosen
