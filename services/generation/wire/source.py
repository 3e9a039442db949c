"""The input of a request: a prompt, a chat, a gap to fill or a text to change."""

from __future__ import annotations

from braid.inference.v1 import inference_pb2 as pb
from services.chassis.violations import Violations
from services.generation.types import Chat, Edit, Infill, Input, Prompt, Turn

MAX_TURNS = 1024
MAX_SPANS = 64
ROLES = ("system", "user", "assistant")

_BLANK = "must hold more than white space"


def read_input(message: pb.GenerateRequest, faults: Violations) -> Input:
    """The one input that is set; notes every fault in it."""
    match message.WhichOneof("input"):
        case "prompt":
            faults.require(bool(message.prompt.strip()), "prompt", _BLANK)
            return Prompt(message.prompt)
        case "chat":
            return _chat(message.chat, faults)
        case "infill":
            return _infill(message.infill, faults)
        case "edit":
            return _edit(message.edit, faults)
        case _:
            faults.add("input", "set one of prompt, chat, infill and edit")
            return Prompt("")


def _chat(chat: pb.Chat, faults: Violations) -> Chat:
    turns = tuple(Turn(message.role, message.content) for message in chat.messages)
    faults.integer("chat.messages", len(turns), 1, MAX_TURNS)
    for index, turn in enumerate(turns[:MAX_TURNS]):
        field = f"chat.messages[{index}].role"
        faults.require(turn.role in ROLES, field, f"must be one of {', '.join(ROLES)}")
    if turns:
        field = f"chat.messages[{len(turns) - 1}]"
        own = turns[-1].role == "assistant"
        faults.require(not own, f"{field}.role", "the last turn must not be the model's own")
        faults.require(bool(turns[-1].content.strip()), f"{field}.content", _BLANK)
    return Chat(turns)


def _infill(infill: pb.Infill, faults: Violations) -> Infill:
    given = bool(infill.prefix or infill.suffix)
    faults.require(given, "infill", "prefix and suffix are both empty")
    return Infill(infill.prefix, infill.suffix)


def _edit(edit: pb.Edit, faults: Violations) -> Edit:
    spans = tuple((span.start, span.end) for span in edit.spans)
    faults.require(bool(edit.text), "edit.text", "must not be empty")
    told = bool(spans or edit.instruction.strip())
    faults.require(told, "edit.instruction", "may be empty only beside spans")
    faults.integer("edit.spans", len(spans), 0, MAX_SPANS)
    _check_spans(spans[:MAX_SPANS], len(edit.text), faults)
    return Edit(edit.text, edit.instruction, spans)


def _check_spans(spans: tuple[tuple[int, int], ...], length: int, faults: Violations) -> None:
    free_from = 0
    for index, (start, end) in enumerate(spans):
        field = f"edit.spans[{index}]"
        faults.require(start <= end, field, f"ends before it starts: {start} to {end}")
        faults.require(end <= length, field, f"ends at {end}, the text at character {length}")
        faults.require(start >= free_from, field, "overlaps the span before it, or is not sorted")
        free_from = max(free_from, end)
