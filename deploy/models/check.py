"""Scores an output text against a golden item; pure."""

import json
import re
from dataclasses import dataclass
from typing import Any

import jsonschema

from deploy.models.tokenizer import END_THINK

_MOVE = re.compile(r"\[([xyz])([+-]\d)\]|\[(open|grip)\]")


@dataclass(frozen=True)
class Score:
    """`right` is the item's own measure; `valid` says whether the output has the required form."""

    right: bool
    valid: bool


def check_output(check: str, output: str, expect: str, schema: str = "") -> Score:
    """Scores by the item's `check`: exact, json, answer or action."""
    match check:
        case "json":
            return _check_json(output, expect, schema)
        case "answer":
            final = final_answer(output)
            return Score(final == expect, final.isdigit())
        case "action":
            return _check_actions(output, expect)
        case "exact":
            return Score(output == expect, bool(output) or not expect)
    raise ValueError(f"unknown check: {check}")


def final_answer(output: str) -> str:
    """What follows the chain; all of the output if there is none."""
    return output.rsplit(END_THINK, 1)[-1].strip()


def _check_json(output: str, expect: str, schema: str) -> Score:
    try:
        document = json.loads(output)
    except ValueError:
        return Score(False, False)
    if schema:
        validator = jsonschema.Draft202012Validator(json.loads(schema))
        if not validator.is_valid(document):
            return Score(False, False)
    return Score(document == json.loads(expect), True)


def _moves(text: str) -> list[tuple[str, int]] | None:
    """Axis and speed of each token, the gripper as `("grip", 0 or 1)`; none amid other text."""
    matches = list(_MOVE.finditer(text))
    if "".join(m.group() for m in matches) != text:
        return None
    return [(m[1], int(m[2])) if m[1] else ("grip", int(m[3] == "grip")) for m in matches]


def _check_actions(output: str, expect: str) -> Score:
    """Right if every move is within one step of the controller's and the form is the same."""
    got, wanted = _moves(output), _moves(expect)
    if got is None or wanted is None or [a for a, _ in got] != [a for a, _ in wanted]:
        return Score(False, False)
    return Score(all(abs(a[1] - b[1]) <= 1 for a, b in zip(got, wanted, strict=True)), True)


def golden_item(line: str) -> dict[str, Any]:
    """One line of a golden set."""
    item: dict[str, Any] = json.loads(line)
    return item
