"""From a typed error to a gRPC status, in one place.

Handlers are wrapped when their servicer is added to a server rather than by an
interceptor: grpc.aio runs interceptors anew for each call, which costs the
router more than the call it makes.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import AsyncIterator, Callable
from typing import Any, NoReturn

import grpc
import grpc.aio
import structlog
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc import error_details_pb2
from google.rpc.status_pb2 import Status

from services.chassis.errors import ServiceError
from services.chassis.in_flight import InFlight

DOMAIN = "braid"
DETAILS_KEY = "grpc-status-details-bin"
MESSAGE_LIMIT_BYTES = 2048
VIOLATIONS_LIMIT = 8
FIELD_LIMIT_BYTES = 64
DESCRIPTION_LIMIT_BYTES = 160
"""With these a status fits the 8 KB of trailers that every client takes."""

log = structlog.get_logger()


def cut(text: str, limit_bytes: int = MESSAGE_LIMIT_BYTES) -> str:
    """The longest start of ``text`` that takes ``limit_bytes`` in a trailer.

    A trailer spells each byte beyond ASCII with three. Lone surrogates become "?".
    """
    text = text.encode(errors="replace").decode()
    room = limit_bytes
    for index, character in enumerate(text):
        room -= _trailer_bytes(character)
        if room < 0:
            return text[:index]
    return text


def _trailer_bytes(character: str) -> int:
    return 1 if " " <= character <= "~" and character != "%" else 3 * len(character.encode())


def to_status(error: ServiceError) -> Status:
    """The google.rpc.Status of ``error``: ErrorInfo, and BadRequest or RetryInfo if any."""
    details: list[Message] = [
        error_details_pb2.ErrorInfo(reason=error.reason, domain=DOMAIN, metadata=error.metadata)
    ]
    if error.violations:
        details.append(_bad_request(error))
    if error.retry_after_s is not None:
        delay = Duration()
        delay.FromMilliseconds(int(error.retry_after_s * 1000))
        details.append(error_details_pb2.RetryInfo(retry_delay=delay))
    status = Status(code=error.code.value[0], message=cut(error.message))
    for detail in details:
        packed = AnyMessage()
        packed.Pack(detail)
        status.details.append(packed)
    return status


def _bad_request(error: ServiceError) -> error_details_pb2.BadRequest:
    return error_details_pb2.BadRequest(
        field_violations=[
            error_details_pb2.BadRequest.FieldViolation(
                field=cut(violation.field, FIELD_LIMIT_BYTES),
                description=cut(violation.description, DESCRIPTION_LIMIT_BYTES),
            )
            for violation in error.violations[:VIOLATIONS_LIMIT]
        ]
    )


def reason_of(error: grpc.RpcError) -> str:
    """The ErrorInfo reason in a received status, or "" where there is none."""
    return _reason_in(status_of(error)) if isinstance(error, grpc.aio.AioRpcError) else ""


def status_of(error: grpc.aio.AioRpcError) -> Status:
    """A received status, with its details if it has any."""
    for key, value in error.trailing_metadata() or ():
        if key == DETAILS_KEY and isinstance(value, bytes):
            return Status.FromString(value)
    return Status(code=error.code().value[0], message=cut(error.details() or ""))


def _reason_in(status: Status) -> str:
    info = error_details_pb2.ErrorInfo()
    for detail in status.details:
        if detail.Is(info.DESCRIPTOR) and detail.Unpack(info):
            return str(info.reason)
    return ""


async def abort(context: grpc.aio.ServicerContext[Any, Any], error: ServiceError) -> NoReturn:
    """Ends the call with the status of ``error``."""
    details = ((DETAILS_KEY, to_status(error).SerializeToString()),)
    await context.abort(error.code, cut(error.message), trailing_metadata=details)


def guard(
    servicer: object, calls: InFlight, uncounted: frozenset[str] = frozenset()
) -> _GuardedServicer:
    """``servicer`` with every RPC counted in ``calls`` and its errors mapped.

    RPCs named in ``uncounted`` are streams that last as long as the server; a
    drain does not wait for them.
    """
    return _GuardedServicer(servicer, calls, uncounted)


class _GuardedServicer:
    """Stands in for a servicer where generated code adds it to a server."""

    def __init__(self, servicer: object, calls: InFlight, uncounted: frozenset[str]) -> None:
        self._servicer = servicer
        self._calls = calls
        self._uncounted = uncounted

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._servicer, name)
        calls = InFlight() if name in self._uncounted else self._calls
        if inspect.isasyncgenfunction(method):
            return _guarded_stream(method, calls)
        return _guarded_unary(method, calls)


def _guarded_unary(method: Callable[..., Any], calls: InFlight) -> Callable[..., Any]:
    @functools.wraps(method)
    async def call(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
        with calls.counted():
            try:
                return await method(request, context)
            except Exception as error:
                await _fail(context, error)

    return call


def _guarded_stream(method: Callable[..., Any], calls: InFlight) -> Callable[..., Any]:
    @functools.wraps(method)
    async def call(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> AsyncIterator[Any]:
        with calls.counted():
            try:
                async for message in method(request, context):
                    yield message
            except Exception as error:
                await _fail(context, error)

    return call


async def _fail(context: grpc.aio.ServicerContext[Any, Any], error: Exception) -> NoReturn:
    """Maps whatever a handler raised; what is not a ServiceError is a fault of ours."""
    if isinstance(error, ServiceError):
        await abort(context, error)
    if isinstance(error, grpc.aio.AbortError | asyncio.CancelledError):
        raise error
    log.error("unhandled_error", exc_info=error)
    await abort(context, ServiceError(f"unexpected {type(error).__name__}; see the node's log"))
