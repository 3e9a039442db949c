"""How one request's blocks are denoised: what it asks for, its group's and its model's defaults."""

from __future__ import annotations

from dataclasses import fields
from typing import TypeVar

from services.chassis.errors import LimitExceeded, UnsupportedParameter
from services.chassis.strategies import PARAMETER_OF, PARAMETERS, followers_of
from services.generation.card import ModelCard
from services.generation.limits import Limits
from services.generation.types import Denoising, DenoisingPlan, Paradigm

T = TypeVar("T")


def plan_denoising(
    asked: Denoising | None, card: ModelCard, limits: Limits
) -> DenoisingPlan | None:
    """``asked`` with every default filled in; None for a model that does not denoise.

    Raises UnsupportedParameter and LimitExceeded naming the field for what this
    model, its limits or the strategy cannot honour.
    """
    asked = asked or Denoising()
    if card.paradigm is not Paradigm.DIFFUSION:
        _refuse_any(asked)
        return None
    defaults = card.defaults
    strategy = _strategy(asked, card, limits)
    _refuse_unused(asked, strategy)
    return DenoisingPlan(
        max_steps=_steps(asked, card, limits),
        block_length=_block_length(asked, card),
        strategy=strategy,
        confidence_threshold=_nearest(
            asked.confidence_threshold, limits.confidence_threshold, defaults.confidence_threshold
        ),
        factor=_nearest(asked.factor, limits.factor, defaults.factor),
        entropy_bound=_nearest(asked.entropy_bound, limits.entropy_bound, defaults.entropy_bound),
        distance_decay=defaults.distance_decay,
        edit_threshold=defaults.edit_threshold,
    )


def _refuse_any(asked: Denoising) -> None:
    for field in fields(asked):
        if getattr(asked, field.name) != field.default:
            raise UnsupportedParameter.field(
                f"diffusion.{field.name}", "this model is autoregressive and does not denoise"
            )


def _strategy(asked: Denoising, card: ModelCard, limits: Limits) -> str:
    """The nearest word on it; a group's counts for the models that can follow it."""
    if asked.strategy is not None and asked.strategy not in card.strategies:
        raise UnsupportedParameter.field(
            "diffusion.strategy", f"this model decodes by {', '.join(card.strategies)} alone"
        )
    group = limits.strategy if limits.strategy in card.strategies else None
    return _nearest(asked.strategy, group, card.defaults.strategy)


def _refuse_unused(asked: Denoising, strategy: str) -> None:
    """A parameter that the strategy does not look at would be ignored without a word."""
    for name in PARAMETERS:
        if getattr(asked, name) is not None and PARAMETER_OF[strategy] != name:
            raise UnsupportedParameter.field(
                f"diffusion.{name}",
                f"is not used by strategy {strategy}, but by {', '.join(followers_of(name))}",
            )


def _steps(asked: Denoising, card: ModelCard, limits: Limits) -> int:
    if asked.max_steps is None:
        return min(card.defaults.max_steps, limits.max_steps)
    if asked.max_steps > limits.max_steps:
        raise LimitExceeded.field(
            "diffusion.max_steps", f"{asked.max_steps} is over the limit of {limits.max_steps}"
        )
    return asked.max_steps


def _block_length(asked: Denoising, card: ModelCard) -> int:
    length = card.block_length if asked.block_length is None else asked.block_length
    if length not in card.trained_block_lengths:
        trained = ", ".join(map(str, card.trained_block_lengths))
        raise UnsupportedParameter.field(
            "diffusion.block_length", f"this model was trained for blocks of {trained}"
        )
    return length


def _nearest(call: T | None, group: T | None, model: T) -> T:
    """The call's word, else the group's, else the model's."""
    if call is not None:
        return call
    return model if group is None else group
