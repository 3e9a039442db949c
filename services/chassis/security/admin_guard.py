"""Operators alone on the admin port of a process that keeps no copy of the registry."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import grpc.aio
from prometheus_client import CollectorRegistry

from services.chassis import keys
from services.chassis.mirror import Mirror
from services.chassis.registry import Registry
from services.chassis.security.access import AccessSettings
from services.chassis.security.audit import Audit
from services.chassis.security.callers import Callers
from services.chassis.security.operators import OperatorsOnly

_PATIENCE_S = 2.0


class AdminGuard:
    """The interceptors of the port, none where everybody is served."""

    def __init__(
        self,
        settings: AccessSettings,
        metrics: CollectorRegistry,
        open_methods: frozenset[str] = frozenset(),
    ) -> None:
        self.interceptors: Sequence[grpc.aio.ServerInterceptor] = ()
        self._callers: Callers | None = None
        self._mirror: Mirror | None = None
        if settings.restricted:
            self._callers = Callers(settings.operator_key)
            audit = Audit(metrics)
            self.interceptors = (OperatorsOnly(self._callers, audit, open_methods),)

    def who(self, context: Any) -> str:
        """Id of the caller that was let in; empty where nobody is asked for it."""
        if self._callers is None:
            return ""
        metadata = dict(context.invocation_metadata() or ())
        return self._callers.identify(metadata, context.auth_context).caller_id

    async def follow(self, registry: Registry) -> None:
        """Keeps up with the callers in etcd for ever, where they matter."""
        if self._callers:
            self._mirror = Mirror(registry, keys.CALLERS)
            self._mirror.subscribe(self._callers.apply)
            await self._mirror.run()

    async def caught_up(self, revision: int) -> None:
        """Returns once callers are judged here as of ``revision``, or after _PATIENCE_S.

        So whoever was given a key, or took one away, finds it so at the next call.
        """
        if self._mirror:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._mirror.reached(revision), _PATIENCE_S)
