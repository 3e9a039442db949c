"""The parameters of a request: sampling, denoising, constraint, thinking."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message

from braid.inference.v1 import inference_pb2 as pb
from services.chassis.strategies import check_strategy
from services.chassis.violations import Violations
from services.generation.types import Constraint, Denoising, Sampling, Thinking

MAX_STOPS, MAX_STOP_BYTES = 16, 256
MAX_OPTIONS = 1024
MAX_SCHEMA_BYTES = 64 * 1024
MAX_REGEX_BYTES = 4 * 1024
MAX_SEED = 2**63 - 1
MAX_COUNT = 2**32 - 1


def read_sampling(sampling: pb.Sampling, faults: Violations) -> Sampling:
    """How tokens are drawn."""
    read = Sampling(
        max_new_tokens=_given(sampling, "max_new_tokens"),
        temperature=_given(sampling, "temperature"),
        top_p=_given(sampling, "top_p"),
        top_k=_given(sampling, "top_k"),
        seed=_given(sampling, "seed"),
        stop=tuple(sampling.stop),
    )
    faults.integer("sampling.max_new_tokens", read.max_new_tokens, 1, MAX_COUNT)
    faults.number("sampling.temperature", read.temperature, 0, 2)
    faults.number("sampling.top_p", read.top_p, 0, 1, over=True)
    faults.integer("sampling.seed", read.seed, 0, MAX_SEED)
    faults.integer("sampling.stop", len(read.stop), 0, MAX_STOPS)
    for index, stop in enumerate(read.stop[:MAX_STOPS]):
        faults.utf8(f"sampling.stop[{index}]", stop, 1, MAX_STOP_BYTES)
    return read


def read_denoising(message: pb.GenerateRequest, faults: Violations) -> Denoising | None:
    """How a block is denoised; None where the caller says nothing about it."""
    if not message.HasField("diffusion"):
        return None
    read = Denoising(
        max_steps=_given(message.diffusion, "max_steps"),
        block_length=_given(message.diffusion, "block_length"),
        confidence_threshold=_given(message.diffusion, "confidence_threshold"),
        strategy=_given(message.diffusion, "strategy"),
        factor=_given(message.diffusion, "factor"),
        entropy_bound=_given(message.diffusion, "entropy_bound"),
        drafts=message.diffusion.drafts,
    )
    faults.integer("diffusion.max_steps", read.max_steps, 1, MAX_COUNT)
    faults.integer("diffusion.block_length", read.block_length, 1, MAX_COUNT)
    check_strategy(message.diffusion, "diffusion", faults)
    return read


def read_constraint(message: pb.GenerateRequest, faults: Violations) -> Constraint | None:
    """The form the answer must have, if any."""
    if not message.HasField("constraint"):
        return None
    form = message.constraint.WhichOneof("form")
    if form is None:
        faults.add("constraint", "set one of json_schema, regex, choice and template")
        return None
    if form == "choice":
        return Constraint(form, options=_options(message.constraint.choice, faults))
    value: str = getattr(message.constraint, form)
    most = MAX_REGEX_BYTES if form == "regex" else MAX_SCHEMA_BYTES
    faults.utf8(f"constraint.{form}", value, 1, most)
    return Constraint(form, value)


def _options(choice: pb.Choice, faults: Violations) -> tuple[str, ...]:
    options = tuple(choice.options)
    field = "constraint.choice.options"
    faults.integer(field, len(options), 1, MAX_OPTIONS)
    faults.require(all(options), field, "must not be empty texts")
    faults.require(len(set(options)) == len(options), field, "must all be different")
    return options


def read_thinking(thinking: pb.Thinking, faults: Violations) -> Thinking:
    """Whether and how the model reasons first."""
    max_tokens = _given(thinking, "max_tokens")
    faults.integer("thinking.max_tokens", max_tokens, 1, MAX_COUNT)
    return Thinking(_given(thinking, "enabled"), max_tokens, thinking.include)


def _given(message: Message, field: str) -> Any:
    """The value of an optional field, or None where the caller left it unset."""
    return getattr(message, field) if message.HasField(field) else None
