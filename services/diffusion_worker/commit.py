"""Which tokens a denoising step settles: pure functions of the model's guesses.

Whatever the strategy: progress in every step, an end within max_steps, no end
token before everything to its left is decided.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from services.diffusion_worker.strategy import STRATEGIES, Guess
from services.generation.types import DenoisingPlan


@dataclass(frozen=True, slots=True)
class Commit:
    """Indices among the masked positions that are decided now, ascending."""

    chosen: tuple[int, ...]
    forced: int = 0
    """How many missed the bar and are there only because steps ran out."""


def commit(
    guesses: Sequence[Guess],
    plan: DenoisingPlan,
    steps_left: int,
    eos_id: int,
    *,
    first_is_settled: bool = False,
) -> Commit:
    """Decides which guesses stand, for the masked positions of a block from left to right.

    At least one always does, and enough do for ``steps_left`` steps (this one
    included) to finish the block. An end token stands only if everything to its
    left does; then nothing to its right is chosen. ``first_is_settled`` says that
    no later step can better the first guess, so that waiting gains nothing.
    """
    strategy = STRATEGIES[plan.strategy]
    sure = strategy.bar(guesses, plan) if strategy.bar else set()
    if first_is_settled:
        sure.add(0)
    quota = math.ceil(len(guesses) / max(1, steps_left))
    end = _first(guesses, eos_id)
    chosen = {i for i in sure if guesses[i].token != eos_id}
    if end in sure and _led_up_to(end, chosen):
        chosen.add(end)
    while len(chosen) < quota and end not in chosen:
        open_ones = (i for i in range(len(guesses)) if i not in chosen)
        allowed = [i for i in open_ones if guesses[i].token != eos_id or _led_up_to(i, chosen)]
        chosen.add(max(allowed, key=lambda i: (_known(strategy.order(i, guesses[i])), -i)))
    if end in chosen:
        chosen = set(range(end + 1))
    unsure = len(chosen.difference(sure)) if strategy.bar else 0
    return Commit(tuple(sorted(chosen)), forced=min(unsure, len(chosen) - 1))


def edit(
    committed: Mapping[int, int],
    guesses: Mapping[int, Guess],
    plan: DenoisingPlan,
    marks: Collection[int | None] = (),
) -> dict[int, int]:
    """Replacements for committed tokens, by position, that the model now sees otherwise.

    A token gives way to another one with a probability above the plan's
    edit_threshold (LLaDA 2.1's token editing). Positions without a guess stay, and
    ``marks`` neither go nor come: what was answer never turns into reasoning.
    """
    return {
        position: guesses[position].token
        for position, token in committed.items()
        if position in guesses
        and guesses[position].token != token
        and token not in marks
        and guesses[position].token not in marks
        and guesses[position].confidence > plan.edit_threshold
    }


def _first(guesses: Sequence[Guess], eos_id: int) -> int:
    """Index of the first guess that ends the answer; one past the last if none does."""
    return next((i for i, guess in enumerate(guesses) if guess.token == eos_id), len(guesses))


def _led_up_to(index: int, chosen: Collection[int]) -> bool:
    """Whether everything to the left of ``index`` is decided."""
    return all(i in chosen for i in range(index))


def _known(rank: float) -> float:
    """A rank to compare by; what is not a number comes last."""
    return -math.inf if math.isnan(rank) else rank
