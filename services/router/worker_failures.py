"""What a failed call to a worker means, and what its caller is told."""

from __future__ import annotations

import grpc
import grpc.aio

from services.chassis.errors import (
    DeadlineExceeded,
    Draining,
    NotReady,
    NoWorkerAvailable,
    QueueFull,
    ServiceError,
    WorkerLost,
)
from services.chassis.status import reason_of

_NEVER_SENT = "failed to connect to all addresses"
_REFUSED_AT_THE_DOOR = frozenset({Draining.reason, NotReady.reason, QueueFull.reason})
_LOST = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
_RESET = "RST_STREAM"
_BROKEN = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNKNOWN,
        grpc.StatusCode.DATA_LOSS,
    }
)
"""Codes that say that the node failed, not that the request or the moment was wrong."""


def never_started(error: grpc.aio.AioRpcError) -> bool:
    """Whether the worker surely did no work: it was not reached, or refused at its door."""
    reason = reason_of(error)
    return reason in _REFUSED_AT_THE_DOOR if reason else _was_not_reached(error)


def blames_node(error: grpc.aio.AioRpcError) -> bool:
    """Whether the node is at fault: never for bad requests, back-pressure or lateness."""
    return error.code() in _BROKEN and reason_of(error) not in _REFUSED_AT_THE_DOOR


def may_go_again(error: grpc.aio.AioRpcError, *, retry_safe: bool) -> bool:
    """Whether a call that failed before its first byte may be sent to another node."""
    return never_started(error) or (retry_safe and blames_node(error))


def own_fault(error: grpc.aio.AioRpcError) -> ServiceError | None:
    """The failure in our words, or None for a status that the worker itself gave.

    A connection that breaks reads like a status of the worker but has no
    ErrorInfo.
    """
    if reason_of(error):
        return None
    if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        return DeadlineExceeded("the call's deadline passed before the answer")
    if _was_not_reached(error):
        return NoWorkerAvailable("the nodes chosen could not be reached", retry_after_s=1.0)
    broken = error.code() is grpc.StatusCode.INTERNAL and _RESET in (error.details() or "")
    if error.code() in _LOST or broken:
        return WorkerLost("the node that ran the call went away")
    return None


def _was_not_reached(error: grpc.aio.AioRpcError) -> bool:
    unavailable = error.code() is grpc.StatusCode.UNAVAILABLE
    return unavailable and (error.details() or "").startswith(_NEVER_SENT)
