"""How enum values of the contract are written on the command line and in tables."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, cast

import typer

from braid.inference.v1 import inference_pb2 as inference
from braid.worker.v1 import worker_pb2 as worker


class TaskName(StrEnum):
    """What a request's text is for."""

    CODE_COMPLETION = "code-completion"
    STRUCTURED_OUTPUT = "structured-output"
    TEXT_EDITING = "text-editing"
    ACTION_CONTROL = "action-control"
    REASONING = "reasoning"
    MATH = "math"
    CHAT = "chat"
    TEXT_GENERATION = "text-generation"

    @property
    def number(self) -> inference.Task:
        """The enum value that stands in a request."""
        return cast("inference.Task", inference.Task.Value(f"TASK_{self.name}"))


def parse_task(text: str) -> TaskName:
    """The task called ``text``, in this form or the contract's. Raises BadParameter."""
    name = text.upper().replace("-", "_").removeprefix("TASK_")
    if name not in TaskName.__members__:
        raise typer.BadParameter(f"{text!r} is none of {', '.join(TaskName)}")
    return TaskName[name]


class PriorityName(StrEnum):
    """A request's place in queues."""

    INTERACTIVE = "interactive"
    NORMAL = "normal"
    BATCH = "batch"

    @property
    def number(self) -> inference.Priority:
        """The enum value that stands in a request."""
        return cast("inference.Priority", inference.Priority.Value(f"PRIORITY_{self.name}"))


def task_name(task: int) -> str:
    """``code-completion`` for TASK_CODE_COMPLETION."""
    return _short(inference.Task, task, "TASK_")


def paradigm_name(paradigm: int) -> str:
    """``diffusion`` for PARADIGM_DIFFUSION."""
    return _short(inference.Paradigm, paradigm, "PARADIGM_")


def finish_name(reason: int) -> str:
    """``stop`` for FINISH_REASON_STOP."""
    return _short(inference.FinishReason, reason, "FINISH_REASON_")


def state_name(state: int) -> str:
    """``ready`` for NODE_STATE_READY."""
    return _short(worker.NodeState, state, "NODE_STATE_")


def _short(enum: Any, value: int, prefix: str) -> str:
    """The value's name; its number where a newer server sent one that is not known here."""
    try:
        return str(enum.Name(value)).removeprefix(prefix).lower().replace("_", "-")
    except ValueError:
        return str(value)
