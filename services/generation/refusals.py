"""What a request may not ask of a model, refused by the field's name."""

from __future__ import annotations

from services.chassis.errors import UnsupportedParameter
from services.generation.card import ModelCard
from services.generation.types import Denoising, Edit, Infill, Job, Request

RUNS = ("distance_threshold", "frontier_run", "static_quota")
"""Strategies of answers that are kept to a form: all settle it from the left."""


def refuse_unsupported(card: ModelCard, request: Request) -> None:
    """What the model cannot honour is refused by name."""
    kind = request.constraint.kind if request.constraint else None
    if kind is not None and kind not in card.capabilities:
        raise UnsupportedParameter.field(f"constraint.{kind}", "is not supported by this model")
    if isinstance(request.input, Edit) and request.input.spans and not card.fills_gaps:
        raise UnsupportedParameter.field("edit.spans", "this model fills no gaps in a text")
    if card.self_driven:
        _refuse_steering(request)
    if request.thinking.enabled:
        fits = not isinstance(request.input, Infill | Edit)
        if card.thinking is None or not fits:
            raise UnsupportedParameter.field(
                "thinking.enabled", "this model does not reason before such an answer"
            )


def _refuse_steering(request: Request) -> None:
    """A model that runs itself draws by a schedule, and reasons for as long, as it will."""
    for name in ("temperature", "top_p", "top_k"):
        if getattr(request.sampling, name) is not None:
            raise UnsupportedParameter.field(
                f"sampling.{name}", "this model draws by a schedule of its own"
            )
    if request.thinking.max_tokens is not None:
        raise UnsupportedParameter.field(
            "thinking.max_tokens", "this model ends its reasoning by itself"
        )


def refuse_unmeasured(card: ModelCard, request: Request) -> None:
    """A gap before a suffix that stands where it stands needs a length."""
    source, given = request.input, request.sampling.max_new_tokens
    gap = isinstance(source, Infill) and bool(source.suffix)
    if card.sees_right and gap and given is None:
        raise UnsupportedParameter.field(
            "sampling.max_new_tokens",
            "must be set: this model fills a gap of just so many tokens before a suffix",
        )


def refuse_beside_form(job: Job, asked: Denoising | None) -> None:
    """What an automaton leaves no room for."""
    if asked and asked.strategy is not None and asked.strategy not in RUNS:
        raise UnsupportedParameter.field(
            "diffusion.strategy", f"must be one of {', '.join(RUNS)} beside a constraint"
        )
    if job.stop:
        raise UnsupportedParameter.field("sampling.stop", "is not supported beside a constraint")
