"""What the router knows of a request: a pure reading of its message."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from braid.inference.v1 import inference_pb2
from services.chassis.errors import InvalidRequest
from services.generation.types import (
    Chat,
    Denoising,
    Edit,
    Infill,
    Input,
    Priority,
    Prompt,
    Request,
)

Task = inference_pb2.Task

SESSION_LABEL = "session"
NO_LABELS: Mapping[str, str] = MappingProxyType({})

DIFFUSION = "diffusion"
"""The need of a request that sets denoising parameters."""

DEFAULT_NEW_TOKENS = 128
DEFAULT_BLOCK_LENGTH = 16
DEFAULT_STEPS = 6
"""Denoising steps a block takes on average under a confidence threshold."""

FIELD_OF_NEED: Mapping[str, str] = {
    DIFFUSION: "diffusion",
    "infill": "infill",
    "edit": "edit",
    "thinking": "thinking.enabled",
    "seed": "sampling.seed",
    "json_schema": "constraint.json_schema",
    "regex": "constraint.regex",
    "choice": "constraint.choice",
    "template": "constraint.template",
}
"""The field of a request that asks for a capability."""

_TASK_OF_INPUT = {
    "infill": inference_pb2.TASK_CODE_COMPLETION,
    "edit": inference_pb2.TASK_TEXT_EDITING,
    "chat": inference_pb2.TASK_CHAT,
}


@dataclass(frozen=True, slots=True)
class Features:
    """Everything a routing decision may depend on.

    ``needs`` are the capabilities a node must have; ``latency_budget_s`` is the
    nearer of the request's budget and the call's deadline, None without either.
    """

    task: Task
    model: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    caller: str = ""
    latency_budget_s: float | None = None
    constraint: str = ""
    prompt_bytes: int = 0
    max_new_tokens: int | None = None
    max_steps: int | None = None
    block_length: int | None = None
    priority: Priority = Priority.NORMAL
    needs: frozenset[str] = frozenset()
    retry_safe: bool = False

    @property
    def session(self) -> str:
        """Calls that share it stay on one version; empty: none."""
        return self.labels.get(SESSION_LABEL, "")

    def forwards(self, *, diffusion: bool) -> float:
        """Forward passes the answer is expected to take.

        A diffusion model needs blocks x steps, an autoregressive one its tokens.
        """
        tokens = self.max_new_tokens or DEFAULT_NEW_TOKENS
        if not diffusion:
            return float(tokens)
        blocks = math.ceil(tokens / (self.block_length or DEFAULT_BLOCK_LENGTH))
        return float(blocks * min(self.max_steps or DEFAULT_STEPS, DEFAULT_STEPS))


def features_of(
    message: inference_pb2.GenerateRequest, request: Request, caller: str = ""
) -> Features:
    """What routing may depend on; ``request`` is the validated form of ``message``.

    Raises InvalidRequest where the task is neither said nor plain from the
    request's form.
    """
    constraint = request.constraint.kind if request.constraint else ""
    denoising = request.denoising or Denoising()
    return Features(
        task=message.task or _task_by_signals(request),
        model=request.model,
        labels=dict(message.labels) if message.labels else NO_LABELS,
        caller=caller,
        latency_budget_s=_latency_budget(request),
        constraint=constraint,
        prompt_bytes=_input_bytes(request.input),
        max_new_tokens=request.sampling.max_new_tokens,
        max_steps=denoising.max_steps,
        block_length=denoising.block_length,
        priority=request.priority,
        needs=_needs(request, constraint),
        retry_safe=message.retry_safe,
    )


def _task_by_signals(request: Request) -> Task:
    """Judges by declared form alone, the most telling first; the text is never read."""
    if request.constraint:
        return inference_pb2.TASK_STRUCTURED_OUTPUT
    if isinstance(request.input, Infill):
        return inference_pb2.TASK_CODE_COMPLETION
    if isinstance(request.input, Edit):
        return inference_pb2.TASK_TEXT_EDITING
    if request.thinking.enabled:
        return inference_pb2.TASK_REASONING
    if isinstance(request.input, Chat):
        return inference_pb2.TASK_CHAT
    raise InvalidRequest.field("task", "must be set: a plain prompt does not show what it is for")


def _latency_budget(request: Request) -> float | None:
    ends = [end for end in (request.deadline, request.answer_by) if end is not None]
    return min(ends) - request.arrived if ends else None


def _input_bytes(given: Input) -> int:
    match given:
        case Prompt(text):
            return _size(text)
        case Chat(turns):
            return sum(_size(turn.content) for turn in turns)
        case Infill(prefix, suffix):
            return _size(prefix) + _size(suffix)
        case Edit(text, instruction):
            return _size(text) + _size(instruction)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _needs(request: Request, constraint: str) -> frozenset[str]:
    needs = {constraint} if constraint else set()
    if isinstance(request.input, Infill):
        needs.add("infill")
    elif isinstance(request.input, Edit):
        needs.add("edit")
    if request.thinking.enabled:
        needs.add("thinking")
    if request.sampling.seed is not None:
        needs.add("seed")
    if request.denoising is not None:
        needs.add(DIFFUSION)
    return frozenset(needs)
