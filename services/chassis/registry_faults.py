"""What a failed call to etcd means."""

from __future__ import annotations

import grpc

from services.chassis.errors import RegistryRefused, RegistryUnavailable, ServiceError

_NEVER_SENT = ("failed to connect", "etcdserver: no leader")
_BAD_TOKEN = (
    "etcdserver: invalid auth token",
    "etcdserver: revision of auth store is old",
    "etcdserver: user name is empty",
)
_BAD_LOGIN = (*_BAD_TOKEN, "etcdserver: authentication failed")
_REFUSED = (
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.OUT_OF_RANGE,
)
_LINK_FAULTS = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


class WatchEnded(RegistryUnavailable):
    """A watch cannot go on; the list has to be read again."""


def is_link_fault(error: grpc.RpcError) -> bool:
    """Whether another endpoint, or a new connection to this one, may do better."""
    return error.code() in _LINK_FAULTS


def was_never_sent(error: grpc.RpcError) -> bool:
    """Whether even a write can be tried again without being made twice."""
    return error.code() is grpc.StatusCode.UNAVAILABLE and _has(error, _NEVER_SENT)


def is_token_fault(error: grpc.RpcError) -> bool:
    """Whether a new token would help: the old one expired, or etcd forgot it."""
    return error.code() is grpc.StatusCode.UNAUTHENTICATED or _has(error, _BAD_TOKEN)


def is_lease_lost(error: grpc.RpcError) -> bool:
    """Whether the lease named in the call is gone."""
    return error.code() is grpc.StatusCode.NOT_FOUND


def fault(error: grpc.RpcError, endpoint: str) -> ServiceError:
    """The failure as the rest of the system knows it."""
    told = f"etcd at {endpoint}: {error.code().name}: {error.details()}"
    if error.code() in _REFUSED and not _has(error, _BAD_LOGIN):
        return RegistryRefused(told)
    return RegistryUnavailable(told)


def _has(error: grpc.RpcError, phrases: tuple[str, ...]) -> bool:
    details = error.details() or ""
    return any(phrase in details for phrase in phrases)
