"""Failures that a caller sees, each with its gRPC status code and reason.

Raised where the fault is known, mapped to a status in one place
(``services.chassis.status``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import grpc


@dataclass(frozen=True, slots=True)
class FieldViolation:
    """One bad field of a request, by its proto path (``sampling.top_p``)."""

    field: str
    description: str


class ServiceError(Exception):
    """Base of every failure with a defined status.

    ``metadata`` becomes ErrorInfo.metadata: short facts for machines, never
    text that came with the request.
    """

    code: grpc.StatusCode = grpc.StatusCode.INTERNAL
    reason: str = "INTERNAL"

    def __init__(
        self,
        message: str,
        *,
        violations: tuple[FieldViolation, ...] = (),
        retry_after_s: float | None = None,
        metadata: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.violations = violations
        self.retry_after_s = retry_after_s
        self.metadata = metadata or {}


class InvalidRequest(ServiceError):
    """The request is wrong whatever the system's state."""

    code, reason = grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST"

    @classmethod
    def field(cls, field: str, description: str) -> Self:
        """One bad field, named in the message and in BadRequest."""
        return cls(f"{field}: {description}", violations=(FieldViolation(field, description),))


class UnsupportedParameter(InvalidRequest):
    """The model that would serve the request cannot honour a field."""

    reason = "UNSUPPORTED_PARAMETER"


class LimitExceeded(InvalidRequest):
    """A field asks for more than the limit in force."""

    reason = "LIMIT_EXCEEDED"


class UnknownModel(ServiceError):
    """No node and no record has this model."""

    code, reason = grpc.StatusCode.NOT_FOUND, "UNKNOWN_MODEL"


class NotFound(ServiceError):
    """The named thing is not stored."""

    code, reason = grpc.StatusCode.NOT_FOUND, "NOT_FOUND"


class AlreadyExists(ServiceError):
    """The thing is stored already and cannot be changed."""

    code, reason = grpc.StatusCode.ALREADY_EXISTS, "ALREADY_EXISTS"


class RevisionConflict(ServiceError):
    """The stored value is newer than the one the caller saw."""

    code, reason = grpc.StatusCode.ABORTED, "REVISION_CONFLICT"


class StoredValueInvalid(ServiceError):
    """A value in etcd, most likely edited by hand, does not parse."""

    code, reason = grpc.StatusCode.FAILED_PRECONDITION, "STORED_VALUE_INVALID"


class WrongState(ServiceError):
    """The thing is in a state in which that cannot be done; the message says in which."""

    code, reason = grpc.StatusCode.FAILED_PRECONDITION, "WRONG_STATE"


class StillInUse(ServiceError):
    """The thing cannot go while others refer to it; the message names them."""

    code, reason = grpc.StatusCode.FAILED_PRECONDITION, "STILL_IN_USE"


class RollbackRefused(ServiceError):
    """There is nothing to go back to, or it would not serve."""

    code, reason = grpc.StatusCode.FAILED_PRECONDITION, "ROLLBACK_REFUSED"


class NoWorkerAvailable(ServiceError):
    """No node can take the request now."""

    code, reason = grpc.StatusCode.UNAVAILABLE, "NO_WORKER_AVAILABLE"


class WorkerLost(ServiceError):
    """The node that ran the request went away."""

    code, reason = grpc.StatusCode.UNAVAILABLE, "WORKER_LOST"


class NotReady(ServiceError):
    """The node has not loaded its model yet, or never will."""

    code, reason = grpc.StatusCode.UNAVAILABLE, "NOT_READY"


class LoadFailed(ServiceError):
    """The version cannot be loaded; what served before serves on."""

    code, reason = grpc.StatusCode.FAILED_PRECONDITION, "LOAD_FAILED"


class NotDrained(ServiceError):
    """The node serves; drain it first."""

    code, reason = grpc.StatusCode.FAILED_PRECONDITION, "NOT_DRAINED"


class NothingLoaded(ServiceError):
    """The node does not hold the version."""

    code, reason = grpc.StatusCode.FAILED_PRECONDITION, "NOTHING_LOADED"


class EngineStalled(ServiceError):
    """The node's engine stopped making steps; another node may do better."""

    code, reason = grpc.StatusCode.UNAVAILABLE, "ENGINE_STALLED"


class Draining(ServiceError):
    """The node takes no new work because it is about to stop."""

    code, reason = grpc.StatusCode.UNAVAILABLE, "DRAINING"


class RegistryUnavailable(ServiceError):
    """etcd does not answer."""

    code, reason = grpc.StatusCode.UNAVAILABLE, "REGISTRY_UNAVAILABLE"


class RegistryRefused(ServiceError):
    """etcd answers that the write is too large or has too many parts; nothing was written."""

    code, reason = grpc.StatusCode.RESOURCE_EXHAUSTED, "REGISTRY_REFUSED"


class Unauthenticated(ServiceError):
    """Nobody knows who calls."""

    code, reason = grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED"


class PermissionDenied(ServiceError):
    """The caller is known and may not do this."""

    code, reason = grpc.StatusCode.PERMISSION_DENIED, "PERMISSION_DENIED"


class QuotaExceeded(ServiceError):
    """The caller asks for more than its quota; others are served."""

    code, reason = grpc.StatusCode.RESOURCE_EXHAUSTED, "QUOTA_EXCEEDED"


class QueueFull(ServiceError):
    """The waiting line is full; try again later."""

    code, reason = grpc.StatusCode.RESOURCE_EXHAUSTED, "QUEUE_FULL"


class WaitTooLong(ServiceError):
    """The call's turn would come after its deadline."""

    code, reason = grpc.StatusCode.RESOURCE_EXHAUSTED, "WAIT_TOO_LONG"


class SlowReader(ServiceError):
    """The caller did not read its stream for too long."""

    code, reason = grpc.StatusCode.RESOURCE_EXHAUSTED, "SLOW_READER"


class DeadlineExceeded(ServiceError):
    """The caller's deadline passed before the answer."""

    code, reason = grpc.StatusCode.DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED"


class AnswerTooLarge(ServiceError):
    """The answer does not fit one message; a stream could carry it."""

    code, reason = grpc.StatusCode.RESOURCE_EXHAUSTED, "ANSWER_TOO_LARGE"


class ConstraintNotMet(ServiceError):
    """The answer broke the constraint, after repair as well."""

    code, reason = grpc.StatusCode.FAILED_PRECONDITION, "CONSTRAINT_NOT_MET"


class EngineFailure(ServiceError):
    """The engine broke; the fault is on this side."""

    code, reason = grpc.StatusCode.INTERNAL, "ENGINE_FAILURE"
