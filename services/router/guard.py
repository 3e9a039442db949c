"""What a router puts before its two ports: nothing, or the question of who calls."""

from __future__ import annotations

from collections.abc import Sequence

import grpc.aio
from prometheus_client import CollectorRegistry

from services.chassis.mirror import Mirror
from services.chassis.security.access import AccessSettings
from services.chassis.security.audit import Audit
from services.chassis.security.callers import Callers
from services.chassis.security.operators import OperatorsOnly
from services.router.door import Door, OpenDoor
from services.router.guarded_door import GuardedDoor
from services.router.live_table import LiveTable
from services.router.quota import Quotas


class Guard:
    """The door of the inference port and the interceptors of the admin port."""

    def __init__(
        self, settings: AccessSettings, live: LiveTable, mirror: Mirror, metrics: CollectorRegistry
    ) -> None:
        self.door: Door = OpenDoor()
        self.interceptors: Sequence[grpc.aio.ServerInterceptor] = ()
        if settings.restricted:
            callers = Callers(settings.operator_key, records=live.callers)
            self._close(callers, mirror, Audit(metrics))

    def _close(self, callers: Callers, mirror: Mirror, audit: Audit) -> None:
        quotas = Quotas()
        mirror.subscribe(callers.apply)
        mirror.subscribe(quotas.apply)
        self.door = GuardedDoor(callers, quotas, audit)
        self.interceptors = (OperatorsOnly(callers, audit),)
