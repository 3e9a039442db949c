"""One training or test case, before it becomes tokens."""

import json
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any


@dataclass(frozen=True)
class Plain:
    """One prompt, as `braid generate` sends it."""

    prompt: str


@dataclass(frozen=True)
class Infill:
    """The text on both sides of a gap."""

    prefix: str
    suffix: str


@dataclass(frozen=True)
class Edit:
    """A text and what to change in it."""

    text: str
    instruction: str


@dataclass(frozen=True)
class Turn:
    """One message; role is system, user or assistant."""

    role: str
    content: str


@dataclass(frozen=True)
class Chat:
    """A conversation whose next turn is the assistant's."""

    turns: tuple[Turn, ...]


Input = Plain | Infill | Edit | Chat

INPUT_FIELDS: dict[type, str] = {Plain: "prompt", Infill: "infill", Edit: "edit", Chat: "chat"}


@dataclass(frozen=True)
class Example:
    """An input, the answer it should get, and how an answer is scored.

    `thinking` is the visible chain before the answer; with `thinking_off` the chain is written
    but the model is asked to answer at once.
    """

    kind: str
    task: str
    input: Input
    answer: str
    check: str
    thinking: str = ""
    thinking_off: bool = False
    schema: str = ""


def input_message(source: Input) -> dict[str, Any]:
    """The input in the shape of the contract's `input` oneof, as JSON."""
    match source:
        case Plain(prompt):
            return {"prompt": prompt}
        case Infill(prefix, suffix):
            return {"infill": {"prefix": prefix, "suffix": suffix}}
        case Edit(text, instruction):
            return {"edit": {"text": text, "instruction": instruction}}
        case Chat(turns):
            return {"chat": {"messages": [vars(turn) for turn in turns]}}


def input_from_message(message: dict[str, Any]) -> Input:
    """The inverse of `input_message`."""
    if "prompt" in message:
        return Plain(message["prompt"])
    if "infill" in message:
        return Infill(**message["infill"])
    if "edit" in message:
        return Edit(**message["edit"])
    return Chat(tuple(Turn(**turn) for turn in message["chat"]["messages"]))


SPLITS = 24


def split_of(source: Input) -> str:
    """The split an input belongs to, by its hash: no prompt can be in two of them."""
    text = json.dumps(input_message(source), sort_keys=True)
    bucket = int.from_bytes(blake2b(text.encode(), digest_size=4).digest(), "big") % SPLITS
    return {0: "golden", 1: "holdout"}.get(bucket, "train")
