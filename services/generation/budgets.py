"""How many tokens and how much time an answer may take."""

from __future__ import annotations

from services.chassis.errors import LimitExceeded
from services.generation.card import ModelCard
from services.generation.limits import Limits
from services.generation.types import Infill, Input, Paradigm, Request

RESERVE = 0.05
"""Share of a call's time kept for the answer's way back, where what was measured is less."""
_ANSWER_SHARE = 4
"""An infill without max_new_tokens leaves a quarter of the context to its answer."""


def most_new_tokens(request: Request, limits: Limits) -> int | None:
    """What was asked for; raises LimitExceeded where that is more than the limit."""
    asked = request.sampling.max_new_tokens
    if asked is not None and asked > limits.max_new_tokens:
        raise over("sampling.max_new_tokens", asked, limits.max_new_tokens)
    return asked


def thinking_tokens(request: Request, limits: Limits) -> int | None:
    """The same for reasoning."""
    asked = request.thinking.max_tokens
    if asked is not None and asked > limits.max_new_tokens:
        raise over("thinking.max_tokens", asked, limits.max_new_tokens)
    return asked


def room(source: Input, most: int | None, limits: Limits) -> int:
    """Tokens that the prompt may take: at least one is left to the answer."""
    if not isinstance(source, Infill):
        return limits.max_context - 1
    spare = min(limits.max_new_tokens, max(limits.max_context // _ANSWER_SHARE, 1))
    return limits.max_context - (most or spare)


def over(field: str, asked: int, limit: int) -> LimitExceeded:
    """The error of a number above its limit."""
    return LimitExceeded.field(field, f"{asked} is over the limit of {limit}")


def answer_by(card: ModelCard, request: Request) -> float | None:
    """When what there is becomes the answer: early enough to reach its caller in time.

    For a model that can answer at any time the call's deadline counts as well.
    """
    by_deadline = card.paradigm is Paradigm.DIFFUSION
    ends = (request.answer_by, request.deadline if by_deadline else None)
    end = min((end for end in ends if end is not None), default=None)
    if end is None:
        return None
    return end - max(request.way_back_s, RESERVE * (end - request.arrived))
