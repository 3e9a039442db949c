"""Decoding strategies: which guesses of a denoising step are good enough to stand.

Pure functions. A strategy says which masked positions clear its bar, and which
come first where too few do; ``commit`` sees to what holds for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile

from services.generation.types import DenoisingPlan


@dataclass(frozen=True, slots=True)
class Guess:
    """The token a model would put at a position, and its probability (NaN: unknown)."""

    token: int
    confidence: float
    entropy: float = math.nan
    """Of the model's distribution at the position, in nats."""
    rival: float = math.nan
    """Probability of the likeliest other token."""
    luck: float = 0.0
    """The request's random number for the position in this step."""

    @property
    def lead(self) -> float:
        """How far the token is ahead of the likeliest other one."""
        return self.confidence - self.rival


Bar = Callable[[Sequence[Guess], DenoisingPlan], set[int]]
"""From the guesses at the masked positions, left to right, those that clear the bar."""

Order = Callable[[int, Guess], float]
"""Rank of the guess with that index, the highest first; NaN: comes last."""


def surest(_index: int, guess: Guess) -> float:
    """By probability."""
    return guess.confidence


def leftmost(index: int, _guess: Guess) -> float:
    """By position."""
    return -index


def clearest(_index: int, guess: Guess) -> float:
    """By entropy, the lowest first."""
    return -guess.entropy


def furthest_ahead(_index: int, guess: Guess) -> float:
    """By the lead over the likeliest other token."""
    return guess.lead


def luckiest(_index: int, guess: Guess) -> float:
    """By chance."""
    return guess.luck


def threshold(guesses: Sequence[Guess], plan: DenoisingPlan) -> set[int]:
    """Every position that the model is sure enough of (Fast-dLLM's parallel decoding)."""
    return {i for i, guess in enumerate(guesses) if guess.confidence >= plan.confidence_threshold}


def distance_threshold(guesses: Sequence[Guess], plan: DenoisingPlan) -> set[int]:
    """The same with a bar that rises with each masked position to the left.

    The bar is 1 - (1 - t) f^d: a guess that hangs on d open ones has to be surer.
    """
    doubt = 1 - plan.confidence_threshold
    return {
        i
        for i, guess in enumerate(guesses)
        if guess.confidence >= 1 - doubt * plan.distance_decay**i
    }


def frontier_run(guesses: Sequence[Guess], plan: DenoisingPlan) -> set[int]:
    """From the left up to the first position that the model is not sure enough of."""
    sure = threshold(guesses, plan)
    return set(takewhile(sure.__contains__, range(len(guesses))))


def factor(guesses: Sequence[Guess], plan: DenoisingPlan) -> set[int]:
    """The n surest, with the largest n for which (n + 1) (1 - p_n) < factor.

    Factor-based parallel decoding of Fast-dLLM (Wu et al. 2025, arXiv:2505.22618):
    the more are committed together, the surer each has to be.
    """
    ranked = _ranked(guesses, surest)
    return {
        i
        for n, i in enumerate(ranked, start=1)
        if (n + 1) * (1 - guesses[i].confidence) < plan.factor
    }


def entropy_bound(guesses: Sequence[Guess], plan: DenoisingPlan) -> set[int]:
    """The clearest, as many as have at most the bound in entropy without the last of them.

    EB-Sampler (Ben-Hamu et al. 2025, arXiv:2505.24857), ordered by entropy: the
    sum less its largest term bounds what the positions can tell of each other.
    """
    ranked = _ranked(guesses, clearest)
    before = accumulate((guesses[i].entropy for i in ranked), initial=0.0)
    return {i for i, nats in zip(ranked, before, strict=False) if nats <= plan.entropy_bound}


def margin(guesses: Sequence[Guess], plan: DenoisingPlan) -> set[int]:
    """Every position whose token is ahead of any other one by more than the threshold.

    The measure is that of Kim et al. 2025 (arXiv:2502.06768), who order by it.
    """
    return {i for i, guess in enumerate(guesses) if guess.lead > plan.confidence_threshold}


@dataclass(frozen=True, slots=True)
class Strategy:
    """How the guesses of a step are chosen among."""

    bar: Bar | None
    """What clears it is committed; None commits no more than the steps left call for."""
    order: Order = surest
    """Who comes first where too few clear the bar."""
    spread: bool = False
    """Whether it looks at entropies and rivals."""
    luck: bool = False
    """Whether it looks at luck."""


STRATEGIES: Mapping[str, Strategy] = {
    "threshold": Strategy(threshold),
    "distance_threshold": Strategy(distance_threshold),
    "frontier_run": Strategy(frontier_run, leftmost),
    "factor": Strategy(factor),
    "entropy_bound": Strategy(entropy_bound, clearest, spread=True),
    "margin": Strategy(margin, furthest_ahead, spread=True),
    "static_quota": Strategy(None),
    "random": Strategy(None, luckiest, luck=True),
}
"""By their names in the contract. static_quota is LLaDA's low-confidence remasking, random its
random one (Nie et al. 2025, arXiv:2502.09992)."""


def _ranked(guesses: Sequence[Guess], order: Order) -> list[int]:
    """Indices in that order, leftmost first among equals, without those that have no rank."""
    ranks = [order(i, guess) for i, guess in enumerate(guesses)]
    return sorted((i for i, rank in enumerate(ranks) if rank == rank), key=lambda i: -ranks[i])
