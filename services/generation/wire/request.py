"""GenerateRequest to Request."""

from __future__ import annotations

import re
import uuid

from braid.inference.v1 import inference_pb2 as pb
from services.chassis.violations import Violations
from services.generation.types import Priority, Request
from services.generation.wire.parameters import (
    read_constraint,
    read_denoising,
    read_sampling,
    read_thinking,
)
from services.generation.wire.source import read_input

MAX_LABELS, MAX_LABEL_BYTES = 16, 63
MAX_BUDGET_S = 315_576_000_000.0
"""What a google.protobuf.Duration can hold."""

REQUEST_ID_FORM = "must be 1 to 128 printable ASCII characters, without a space at its ends"

_REQUEST_ID = re.compile(r"[\x21-\x7e]([\x20-\x7e]{0,126}[\x21-\x7e])?\Z", re.ASCII)
_TASK_NAMES = {number: name for name, number in pb.Task.items()}
_PRIORITIES = {
    pb.PRIORITY_UNSPECIFIED: Priority.NORMAL,
    pb.PRIORITY_INTERACTIVE: Priority.INTERACTIVE,
    pb.PRIORITY_NORMAL: Priority.NORMAL,
    pb.PRIORITY_BATCH: Priority.BATCH,
}


def from_proto(
    message: pb.GenerateRequest,
    *,
    now: float,
    metadata_request_id: str = "",
    time_remaining_s: float | None = None,
) -> Request:
    """The validated request that ``message`` asks for.

    ``now`` is time.monotonic() at arrival, ``time_remaining_s`` what the gRPC
    deadline leaves. Raises InvalidRequest with every bad field. Judges what is
    wrong for any model; limits and abilities of this one are judged later.
    """
    faults = Violations()
    budget_s = _latency_budget(message, faults)
    request = Request(
        request_id=_request_id(message.request_id or metadata_request_id, faults),
        task=_task(message, faults),
        model=message.model,
        input=read_input(message, faults),
        arrived=now,
        sampling=read_sampling(message.sampling, faults),
        denoising=read_denoising(message, faults),
        constraint=read_constraint(message, faults),
        thinking=read_thinking(message.thinking, faults),
        priority=_priority(message, faults),
        deadline=None if time_remaining_s is None else now + time_remaining_s,
        answer_by=None if budget_s is None else now + budget_s,
    )
    _check_labels(message, faults)
    faults.raise_if_any()
    return request


def is_request_id(text: str) -> bool:
    """Whether ``text`` can name a call."""
    return _REQUEST_ID.match(text) is not None


def _request_id(given: str, faults: Violations) -> str:
    if not given:
        return uuid.uuid4().hex
    faults.require(is_request_id(given), "request_id", REQUEST_ID_FORM)
    return given


def _task(message: pb.GenerateRequest, faults: Violations) -> str:
    """The task's name. A worker has nothing to choose by it, so unspecified is fine."""
    if message.task not in _TASK_NAMES:
        faults.add("task", f"is no known task: {message.task}")
        return _TASK_NAMES[pb.TASK_UNSPECIFIED]
    return _TASK_NAMES[message.task]


def _priority(message: pb.GenerateRequest, faults: Violations) -> Priority:
    faults.require(
        message.priority in _PRIORITIES, "priority", f"is no known priority: {message.priority}"
    )
    return _PRIORITIES.get(message.priority, Priority.NORMAL)


def _latency_budget(message: pb.GenerateRequest, faults: Violations) -> float | None:
    if not message.HasField("latency_budget"):
        return None
    budget = message.latency_budget
    seconds = budget.seconds + budget.nanos / 1e9
    faults.number("latency_budget", seconds, 0, MAX_BUDGET_S, over=True)
    return seconds


def _check_labels(message: pb.GenerateRequest, faults: Violations) -> None:
    faults.integer("labels", len(message.labels), 0, MAX_LABELS)
    for key, value in list(message.labels.items())[:MAX_LABELS]:
        faults.utf8("labels", key, 1, MAX_LABEL_BYTES)
        faults.utf8("labels", value, 0, MAX_LABEL_BYTES)
