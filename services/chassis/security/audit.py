"""One line and one count for each call that was not let in."""

from __future__ import annotations

import structlog
from prometheus_client import CollectorRegistry, Counter

from services.chassis.security.denial import Denied

log = structlog.get_logger()


class Audit:
    """Keeps the record of denied calls. No key, and nothing of a request, gets into it."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._denied = Counter(
            "braid_denied_calls_total",
            "Calls refused because of who made them, by cause.",
            ("cause",),
            registry=registry,
        )

    def denied(self, denied: Denied, peer: str, method: str, request_id: str = "") -> None:
        """Takes down one call."""
        self._denied.labels(denied.cause).inc()
        log.warning(
            "call_denied",
            caller=denied.caller,
            cause=str(denied.cause),
            code=denied.error.code.name,
            peer=peer,
            method=method,
            request_id=request_id,
        )
