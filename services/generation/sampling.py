"""From logits to tokens, row by row.

Every row is computed on its own, and its randomness is a pure function of
(seed, block, step, position): who shares the batch changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

_WORD = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Draw:
    """How one row is drawn; ``uniform`` in [0, 1) is its luck."""

    temperature: float
    top_p: float
    top_k: int
    uniform: float


@dataclass(frozen=True, slots=True)
class Predictions:
    """The model's view of some rows, one list entry each.

    ``best`` is the likeliest token, ``drawn`` the one taken (the same without
    temperature); confidences are the model's own probabilities, before
    temperature and filters, NaN where the logits were not finite.
    """

    best: list[int]
    best_confidence: list[float]
    drawn: list[int]
    drawn_confidence: list[float]
    entropy: list[float]
    """Of the model's distribution, in nats; NaN unless the row's spread was asked for."""
    rival: list[float]
    """Probability of the likeliest token but for the one drawn; NaN likewise."""
    logits: Tensor = field(repr=False)
    """Shape [rows, vocabulary], float32, banned tokens at -inf."""

    def part(self, start: int, end: int) -> Predictions:
        """The rows from start to end."""
        rows = slice(start, end)
        return Predictions(
            self.best[rows],
            self.best_confidence[rows],
            self.drawn[rows],
            self.drawn_confidence[rows],
            self.entropy[rows],
            self.rival[rows],
            self.logits[rows],
        )


def uniform(seed: int, block: int, step: int, position: int) -> float:
    """A number in [0, 1) that depends on the arguments only.

    SplitMix64 (Steele, Lea, Flood 2014) folded over the counters.
    """
    state = seed & _WORD
    for counter in (block, step, position):
        state = _mix((state ^ counter) + 0x9E3779B97F4A7C15)
    return (state >> 11) / (1 << 53)


@torch.inference_mode()
def predict(
    logits: Tensor,
    draws: Sequence[Draw | None],
    banned: Sequence[int] = (),
    spread: Sequence[bool] = (),
) -> Predictions:
    """Chooses a token for each row of ``logits`` [rows, vocabulary], float32.

    Rows whose draw is None take the likeliest token; ``spread`` says of which
    rows entropy and rival are wanted, empty of none. ``logits`` is changed in
    place: banned tokens get -inf.
    """
    for token in banned:
        logits[:, token] = -torch.inf
    probabilities = logits.softmax(dim=-1)
    top = probabilities.max(dim=-1)
    best, confidence = top.indices.tolist(), top.values.tolist()
    drawn, drawn_confidence = best, confidence
    chosen = [row for row, draw in enumerate(draws) if draw is not None]
    if chosen:
        drawn, drawn_confidence = list(best), list(confidence)
        tokens = _draw(logits[chosen], [draw for draw in draws if draw is not None])
        for row, token, p in zip(
            chosen, tokens.tolist(), probabilities[chosen, tokens].tolist(), strict=True
        ):
            drawn[row], drawn_confidence[row] = token, p
    entropy, rival = _spread(probabilities, drawn, spread)
    return Predictions(best, confidence, drawn, drawn_confidence, entropy, rival, logits)


def _draw(logits: Tensor, draws: Sequence[Draw]) -> Tensor:
    """Inverse transform over the tokens sorted by probability, filters applied.

    A row that is not finite gives token 0; its confidence tells.
    """
    wishes = torch.tensor([[d.temperature, d.top_p, d.top_k, d.uniform] for d in draws])
    temperature, top_p, top_k, luck = wishes.to(logits.device).chunk(4, dim=-1)
    shares = torch.nan_to_num(logits / temperature).softmax(dim=-1)
    ranked = shares.sort(stable=True, dim=-1, descending=True)
    rank = torch.arange(logits.shape[-1], device=logits.device)
    before = ranked.values.cumsum(dim=-1) - ranked.values
    keep = (before < top_p) & ((rank < top_k) | (top_k == 0))
    mass = (ranked.values * keep).cumsum(dim=-1)
    drawn = torch.searchsorted(mass, luck * mass[:, -1:], right=True)
    last = keep.sum(dim=-1, keepdim=True) - 1
    tokens: Tensor = ranked.indices.gather(-1, torch.minimum(drawn, last)).squeeze(-1)
    return tokens


def _spread(
    probabilities: Tensor, drawn: Sequence[int], wanted: Sequence[bool]
) -> tuple[list[float], list[float]]:
    """Entropy and rival of the rows they are wanted of, NaN for the others.

    Summed from left to right: other sums depend on the number of rows.
    """
    entropy, rival = [math.nan] * len(drawn), [math.nan] * len(drawn)
    rows = [row for row, wish in enumerate(wanted) if wish]
    if not rows:
        return entropy, rival
    shares = probabilities[rows]
    entropies = torch.special.entr(shares).cumsum(dim=-1)[:, -1]
    top = shares.topk(2, dim=-1)
    taken = torch.tensor([drawn[row] for row in rows], device=shares.device)
    rivals = torch.where(top.indices[:, 0] == taken, top.values[:, 1], top.values[:, 0])
    for row, nats, p in zip(rows, entropies.tolist(), rivals.tolist(), strict=True):
        entropy[row], rival[row] = nats, p
    return entropy, rival


def _mix(word: int) -> int:
    word &= _WORD
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _WORD
    return word ^ (word >> 31)
