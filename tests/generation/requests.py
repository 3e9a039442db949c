"""Requests, cards and planners for tests."""

from __future__ import annotations

import time
from typing import Any

from services.generation.card import ModelCard
from services.generation.checkpoint import vocabulary_of
from services.generation.codec import TextCodec
from services.generation.grammar.compiler import FormCompiler
from services.generation.limits import Limits
from services.generation.planner import Planner
from services.generation.prompt import PromptEncoder
from services.generation.types import Input, Paradigm, Prompt, Request
from tests.checkpoints import CONTEXT, card_of, tiny_tokenizer

LIMITS = Limits(
    max_steps=16,
    max_batch_size=4,
    max_concurrency=16,
    queue_length=8,
    max_new_tokens=64,
    max_context=CONTEXT,
)


def card(paradigm: Paradigm = Paradigm.DIFFUSION, **changes: Any) -> ModelCard:
    """A tiny model's card."""
    return ModelCard.model_validate(card_of(paradigm) | changes)


def codec() -> TextCodec:
    """The tiny tokenizer as a codec."""
    return TextCodec(tiny_tokenizer(), card().control_tokens)


def planner(paradigm: Paradigm = Paradigm.DIFFUSION, **changes: Any) -> Planner:
    """A planner of a tiny model."""
    described = card(paradigm, **changes)
    text = codec()
    forms = FormCompiler(vocabulary_of(described, text), text.encode)
    return Planner(described, PromptEncoder(described, text), forms)


def request(source: Input | str = "hello", **fields: Any) -> Request:
    """A request; ``fields`` are those of Request."""
    given: dict[str, Any] = {
        "request_id": "r",
        "task": "TASK_UNSPECIFIED",
        "arrived": time.monotonic(),
    }
    return Request(input=Prompt(source) if isinstance(source, str) else source, **(given | fields))
