"""What a denoising step settles, whatever the strategy: force, ends and edits."""

from __future__ import annotations

import math
from dataclasses import replace

from services.diffusion_worker.commit import commit, edit
from services.diffusion_worker.strategy import Guess
from tests.diffusion_worker.guesses import sure
from tests.generation.tiny import EOS, PLAN


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


def test_edits_leave_reasoning_where_it_is() -> None:
    """A mark neither gives way nor replaces anything, however sure the model is."""
    guesses = {10: Guess(9, 1.0), 11: Guess(3, 1.0), 12: Guess(9, 1.0)}
    assert edit({10: 3, 11: 5, 12: 6}, guesses, PLAN, (2, 3)) == {12: 9}
