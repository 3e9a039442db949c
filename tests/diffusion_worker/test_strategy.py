"""What a denoising step settles, as pure functions."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.diffusion_worker.strategy import STRATEGIES, Guess, commit, edit
from tests.generation.tiny import EOS, PLAN

GUESSES = st.lists(
    st.builds(
        Guess,
        token=st.sampled_from([EOS, 4, 5]),
        confidence=st.one_of(st.floats(0, 1), st.just(math.nan)),
    ),
    min_size=1,
    max_size=32,
)
STEPS = st.integers(min_value=-2, max_value=40)
PLANS = st.sampled_from([replace(PLAN, strategy=name) for name in STRATEGIES])


def sure(*confidences: float, token: int = 4) -> list[Guess]:
    return [Guess(token, confidence) for confidence in confidences]


@given(guesses=GUESSES, plan=PLANS, steps=STEPS)
def test_every_step_makes_progress(guesses: list[Guess], plan: object, steps: int) -> None:
    """At least one position is decided, each once, and only positions there are."""
    chosen = commit(guesses, plan, steps, EOS).chosen  # type: ignore[arg-type]
    assert chosen
    assert list(chosen) == sorted(set(chosen))
    assert 0 <= chosen[0] <= chosen[-1] < len(guesses)


@given(guesses=GUESSES, plan=PLANS, steps=STEPS)
def test_an_end_token_has_nothing_open_to_its_left(
    guesses: list[Guess], plan: object, steps: int
) -> None:
    """If an end token stands, everything before it does and nothing after it."""
    chosen = commit(guesses, plan, steps, EOS).chosen  # type: ignore[arg-type]
    ends = [i for i in chosen if guesses[i].token == EOS]
    assert len(ends) <= 1
    if ends:
        assert chosen == tuple(range(ends[0] + 1))


@given(guesses=GUESSES, plan=PLANS, steps=st.integers(min_value=1, max_value=40))
def test_a_block_ends_within_its_steps(guesses: list[Guess], plan: object, steps: int) -> None:
    """Committing step by step ends the block or the answer in at most that many steps."""
    left = guesses
    for step in range(steps):
        chosen = commit(left, plan, steps - step, EOS).chosen  # type: ignore[arg-type]
        if any(left[i].token == EOS for i in chosen):
            return
        left = [guess for i, guess in enumerate(left) if i not in chosen]
        if not left:
            return
    pytest.fail("the block is still open")


def test_threshold_commits_what_is_sure() -> None:
    """Every position at the threshold or above is decided, wherever it lies."""
    plan = replace(PLAN, strategy="threshold", confidence_threshold=0.9)
    assert commit(sure(0.2, 0.9, 0.89, 0.95), plan, 4, EOS).chosen == (1, 3)


def test_the_bar_rises_with_the_distance() -> None:
    """Far from the decided text a guess has to be surer: 1 - (1 - t) f^d."""
    plan = replace(PLAN, confidence_threshold=0.9, distance_decay=0.5)
    assert commit(sure(0.9, 0.949, 0.975, 0.98), plan, 4, EOS).chosen == (0, 2)


def test_the_best_one_is_committed_below_the_threshold() -> None:
    """Where no position is sure enough, the surest is decided, and counts as no force."""
    decision = commit(sure(0.1, 0.3, 0.2), PLAN, 8, EOS)
    assert (decision.chosen, decision.forced) == ((1,), 0)


def test_too_few_steps_force_commits() -> None:
    """Where steps run out, the surest of the rest are decided and counted."""
    plan = replace(PLAN, strategy="threshold", confidence_threshold=0.9)
    decision = commit(sure(0.1, 0.95, 0.3, 0.2), plan, 2, EOS)
    assert (decision.chosen, decision.forced) == ((1, 2), 1)
    assert commit(sure(0.1, 0.2, 0.3), plan, 1, EOS).forced == 2


def test_a_sure_end_waits_for_its_left() -> None:
    """An end token stands in the step in which the last token before it does."""
    guesses = [Guess(4, 0.9), Guess(5, 0.2), Guess(EOS, 0.99), Guess(EOS, 0.99)]
    assert commit(guesses, PLAN, 8, EOS).chosen == (0,)
    guesses[1] = Guess(5, 0.95)
    assert commit(guesses, PLAN, 8, EOS).chosen == (0, 1, 2)


def test_tokens_behind_an_end_are_not_chosen() -> None:
    """What is sure to the right of a resolved end is left alone."""
    guesses = [Guess(EOS, 0.99), Guess(4, 0.99)]
    assert commit(guesses, PLAN, 8, EOS).chosen == (0,)


def test_a_settled_first_guess_always_stands() -> None:
    """Where no later step can better the first guess, it is decided at once, end token or not."""
    guesses = [Guess(4, 0.1), Guess(5, 0.2), Guess(5, 0.9)]
    assert commit(guesses, PLAN, 8, EOS, first_is_settled=True).chosen == (0, 2)
    ended = [Guess(EOS, 0.1), *guesses]
    assert commit(ended, PLAN, 8, EOS, first_is_settled=True).chosen == (0,)


def test_nan_is_the_worst_confidence() -> None:
    """A position without a confidence is taken last."""
    assert commit(sure(math.nan, 0.1, math.nan), PLAN, 8, EOS).chosen == (1,)
    assert commit(sure(math.nan, math.nan), PLAN, 8, EOS).chosen == (0,)


def test_edit_replaces_what_the_model_now_sees_otherwise() -> None:
    """Another token above the edit threshold replaces a committed one; nothing else does."""
    committed = {10: 4, 11: 5, 12: 6, 13: 7, 14: 8}
    guesses = {
        10: Guess(9, 0.71),
        11: Guess(5, 0.99),
        12: Guess(9, 0.7),
        13: Guess(9, math.nan),
        15: Guess(9, 1.0),
    }
    assert edit(committed, guesses, PLAN) == {10: 9}
