"""Admin ports for operators alone."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
import grpc.aio

from services.chassis.errors import ServiceError
from services.chassis.security.audit import Audit
from services.chassis.security.callers import Caller, Callers
from services.chassis.security.denial import Cause, Denied
from services.chassis.status import abort

OPEN_SERVICES = frozenset({"grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"})
"""What shows nothing that the contract does not: probes and tools need it without a key."""


class OperatorsOnly(grpc.aio.ServerInterceptor):
    """Refuses every RPC of a port to all but operators, except the ``open_methods``.

    Refusing is the rule, so an RPC that is added later is closed. It asks at each
    call, so a role that is taken away ends with the running call.
    """

    def __init__(
        self, callers: Callers, audit: Audit, open_methods: frozenset[str] = frozenset()
    ) -> None:
        self._callers = callers
        self._audit = audit
        self._open_methods = open_methods

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        details: grpc.HandlerCallDetails,
    ) -> Any:
        """The handler, with the question of who calls before it."""
        handler = await continuation(details)
        method = details.method
        if handler is None or method in self._open_methods or _service(method) in OPEN_SERVICES:
            return handler
        return _guarded(handler, method, self._check)

    def _check(self, context: Any, method: str) -> None:
        """Raises what the caller is told unless it is an operator."""
        metadata = dict(context.invocation_metadata() or ())
        try:
            self._require_operator(self._callers.identify(metadata, context.auth_context))
        except Denied as denied:
            self._audit.denied(denied, context.peer(), method)
            raise denied.error from None

    def _require_operator(self, caller: Caller) -> None:
        if not caller.operator:
            raise Denied(Cause.NO_OPERATOR, caller.caller_id)


def _service(method: str) -> str:
    return method.strip("/").partition("/")[0]


Check = Callable[[Any, str], None]


def _guarded(handler: Any, method: str, check: Check) -> Any:
    """A handler of the same kind that asks ``check`` first."""
    kind = f"{_word(handler.request_streaming)}_{_word(handler.response_streaming)}"
    inner = getattr(handler, kind)
    make = getattr(grpc, f"{kind}_rpc_method_handler")
    guard = _guarded_stream if inspect.isasyncgenfunction(inner) else _guarded_call
    return make(
        guard(inner, method, check), handler.request_deserializer, handler.response_serializer
    )


def _guarded_call(inner: Callable[..., Any], method: str, check: Check) -> Callable[..., Any]:
    async def call(request: Any, context: Any) -> Any:
        await _ask(check, context, method)
        return await inner(request, context)

    return call


def _guarded_stream(inner: Callable[..., Any], method: str, check: Check) -> Callable[..., Any]:
    async def call(request: Any, context: Any) -> AsyncIterator[Any]:
        await _ask(check, context, method)
        async for message in inner(request, context):
            yield message

    return call


async def _ask(check: Check, context: Any, method: str) -> None:
    try:
        check(context, method)
    except ServiceError as error:
        await abort(context, error)


def _word(streaming: bool) -> str:
    return "stream" if streaming else "unary"
