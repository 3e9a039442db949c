"""One request of each task, of the kinds that the demo pair was trained for."""

from __future__ import annotations

import json
from dataclasses import dataclass

from braid.inference.v1 import inference_pb2 as inference


@dataclass(frozen=True, slots=True)
class DemoRequest:
    """A request and the paradigm that the built-in policy sends it to."""

    request: inference.GenerateRequest
    paradigm: inference.Paradigm


_SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer"},
        "city": {"type": "string"},
    },
    "required": ["name", "age", "city"],
    "additionalProperties": False,
}

_DIFFUSION = (
    inference.GenerateRequest(
        task=inference.TASK_CODE_COMPLETION,
        infill=inference.Infill(
            prefix=(
                "def sum_prices(prices, rate):\n"
                '    """Add up each price times rate."""\n'
                "    total = 0\n    for price in prices:\n        "
            ),
            suffix="\n    return total\n",
        ),
    ),
    inference.GenerateRequest(
        task=inference.TASK_STRUCTURED_OUTPUT,
        prompt=(
            "Extract name, age, city as JSON: This is Anna Berger. "
            "Anna lives in Vienna. Anna is 34 years old."
        ),
        constraint=inference.Constraint(json_schema=json.dumps(_SCHEMA)),
    ),
    inference.GenerateRequest(
        task=inference.TASK_TEXT_EDITING,
        edit=inference.Edit(
            text="We meet in Berlin at 3 o'clock. The talk on robotics was long.",
            instruction="Replace Berlin with Oslo.",
        ),
    ),
    inference.GenerateRequest(
        task=inference.TASK_ACTION_CONTROL,
        prompt="Move the gripper by (+6, -8, +0).",
    ),
)

_AUTOREGRESSIVE = (
    inference.GenerateRequest(
        task=inference.TASK_REASONING,
        prompt=(
            "Anna has 12 lamps. Then 9 more arrive. Anna sells 5. How many lamps are there now?"
        ),
    ),
    inference.GenerateRequest(
        task=inference.TASK_MATH,
        prompt="Start with 7, multiply by 3, add 14. What do you get?",
    ),
    inference.GenerateRequest(task=inference.TASK_CHAT, prompt="What can you do?"),
    inference.GenerateRequest(
        task=inference.TASK_TEXT_GENERATION, prompt="Write a short story about a fox and a lamp."
    ),
)

DEMO_REQUESTS = (
    *(DemoRequest(request, inference.PARADIGM_DIFFUSION) for request in _DIFFUSION),
    *(DemoRequest(request, inference.PARADIGM_AUTOREGRESSIVE) for request in _AUTOREGRESSIVE),
)
