"""What a failed call to a worker means, and what its caller is told."""

from __future__ import annotations

import grpc
import grpc.aio

from services.chassis.errors import (
    DeadlineExceeded,
    Draining,
    NotReady,
    NoWorkerAvailable,
    ServiceError,
    WorkerLost,
)
from services.chassis.status import reason_of

_NEVER_SENT = "failed to connect to all addresses"
_REFUSED_AT_THE_DOOR = frozenset({Draining.reason, NotReady.reason})
_LOST = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
_RESET = "RST_STREAM"


def never_started(error: grpc.aio.AioRpcError) -> bool:
    """Whether the worker surely did no work: it was not reached, or refused at its door."""
    if error.code() is not grpc.StatusCode.UNAVAILABLE:
        return False
    reason = reason_of(error)
    return reason in _REFUSED_AT_THE_DOOR if reason else _was_not_reached(error)


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
    return (error.details() or "").startswith(_NEVER_SENT)
