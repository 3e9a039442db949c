"""A door for known callers: who calls, what they may ask for, and how much of it."""

from __future__ import annotations

import asyncio
from functools import lru_cache
from types import TracebackType
from typing import Self

from services.chassis.errors import ServiceError
from services.chassis.security.audit import Audit
from services.chassis.security.callers import Caller, Callers
from services.chassis.security.denial import Cause, Denied
from services.chassis.security.peer import address_of
from services.router.door import Received, Visit
from services.router.features import Features
from services.router.links import SERVICE
from services.router.passage import Context, Passage
from services.router.policy import Decision
from services.router.quota import Account, Quotas
from services.router.token_usage import LastWritten, expected_tokens, used_tokens


class GuardedDoor:
    """Lets known callers in, within their quotas."""

    def __init__(self, callers: Callers, quotas: Quotas, audit: Audit) -> None:
        self._callers = callers
        self._quotas = quotas
        self._audit = audit

    def greet(self, context: Context) -> None:
        """A stranger does not get to hold a stream open."""
        try:
            self._identify(context, dict(context.invocation_metadata() or ()))
        except Denied as denied:
            self._audit.denied(denied, context.peer(), SERVICE)
            raise denied.error from None

    def visit(self, passage: Passage, received: Received) -> Visit:
        """Begins a caller's visit."""
        try:
            caller = self._identify(passage.context, received)
            account = self._quotas.account(caller)
            account.begin(self._quotas.clock())
        except Denied as denied:
            raise self.refused(denied, passage) from None
        return _CallersVisit(self, caller, account, passage)

    def _identify(self, context: Context, received: Received) -> Caller:
        """Who calls, from where it may; raises Denied."""
        caller = self._callers.identify(received, context.auth_context)
        if caller.networks and not _is_inside(caller, context.peer()):
            raise Denied(Cause.NETWORK, caller.caller_id)
        return caller

    def take_tokens(self, account: Account, tokens: float) -> None:
        """Takes what a call is expected to use; raises Denied."""
        account.take_tokens(tokens, self._quotas.clock())

    def refused(self, denied: Denied, passage: Passage) -> ServiceError:
        """Puts a denied call on record and returns what its caller is told."""
        self._audit.denied(denied, passage.context.peer(), SERVICE, passage.request_id)
        return denied.error


class _CallersVisit:
    __slots__ = ("_account", "_caller", "_door", "_passage", "_taken", "_written")

    def __init__(
        self, door: GuardedDoor, caller: Caller, account: Account, passage: Passage
    ) -> None:
        self._door = door
        self._caller = caller
        self._account = account
        self._passage = passage
        self._taken = 0.0
        self._written: LastWritten | None = None

    @property
    def caller_id(self) -> str:
        return self._caller.caller_id

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """A call that failed before its answer began used no tokens."""
        self._account.end()
        failed = error is not None and not isinstance(error, asyncio.CancelledError)
        if failed and not self._passage.answered:
            self._account.give_back_tokens(self._taken)

    def require_operator(self) -> None:
        if not self._caller.operator:
            denied = Denied(Cause.NO_OPERATOR, self._caller.caller_id)
            raise self._door.refused(denied, self._passage)

    def admit(self, features: Features) -> None:
        try:
            self._check(features)
            if self._account.meters_tokens:
                self._meter(features)
        except Denied as denied:
            raise self._door.refused(denied, self._passage) from None

    def _check(self, features: Features) -> None:
        caller = self._caller
        if caller.tasks and features.task not in caller.tasks:
            raise Denied(Cause.TASK, caller.caller_id)
        if caller.models and features.model and features.model not in caller.models:
            raise Denied(Cause.MODEL, caller.caller_id)
        if caller.models or caller.groups:
            self._passage.check = self._check_decision

    def _check_decision(self, decision: Decision) -> None:
        """Raises what the caller is told where it may not be served by that node."""
        caller, record = self._caller, decision.node.record
        if caller.groups and record.group not in caller.groups:
            raise self._door.refused(Denied(Cause.GROUP, caller.caller_id), self._passage)
        if caller.models and record.model not in caller.models:
            raise self._door.refused(Denied(Cause.MODEL, caller.caller_id), self._passage)

    def _meter(self, features: Features) -> None:
        tokens = expected_tokens(features)
        self._door.take_tokens(self._account, tokens)
        self._taken = tokens
        self._written = LastWritten(self._passage.context)
        self._passage.context = self._written  # type: ignore[assignment]  # stands in for it

    def answered(self, answer: bytes | None) -> None:
        if self._written is None:
            return
        used = used_tokens(answer, self._written.last)
        if used is not None:
            self._account.give_back_tokens(self._taken - used)


@lru_cache(maxsize=4096)
def _is_inside(caller: Caller, peer: str) -> bool:
    """Whether a peer is in the caller's networks; kept, as a connection has many calls."""
    address = address_of(peer)
    return address is not None and any(address in network for network in caller.networks)
