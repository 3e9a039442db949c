"""One call on its way through the router, and the record that is kept of it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import grpc
import grpc.aio
import structlog

from services.chassis.errors import ServiceError
from services.router.features import Features
from services.router.metrics import NONE, TASK_LABELS, UNKNOWN, CallLabels, RouterMetrics
from services.router.policy import Decision
from services.router.table import RoutingTable

_OTHER = "other"

log = structlog.get_logger()


Context = grpc.aio.ServicerContext[Any, Any]


class TableSource(Protocol):
    """Where the table in force is found."""

    @property
    def table(self) -> RoutingTable:
        """The newest table."""

    @property
    def loaded(self) -> bool:
        """Whether it reflects a registry; until then nobody knows what nodes there are."""


class Passage:
    """One call: what came with it, and what is known of it so far."""

    __slots__ = (
        "answered",
        "arrived",
        "body",
        "code",
        "context",
        "decision",
        "error",
        "features",
        "request_id",
    )

    def __init__(self, body: bytes, context: Context) -> None:
        self.body = body
        self.context = context
        self.arrived = time.monotonic()
        self.request_id = uuid.uuid4().hex
        """Made here; the caller's takes its place where it gives one."""
        self.features: Features | None = None
        self.decision: Decision | None = None
        self.answered = False
        """Whether a part of the answer has gone out, so that no other node can start anew."""
        self.code = grpc.StatusCode.INTERNAL
        self.error = ""

    def ended(self, code: grpc.StatusCode, error: str = "") -> None:
        """How the call ended; ``error`` is the ErrorInfo reason."""
        self.code = code
        self.error = error


class Journal:
    """Counts and logs each call once, whatever becomes of it."""

    def __init__(self, metrics: RouterMetrics, tables: TableSource) -> None:
        self._metrics = metrics
        self._tables = tables

    @contextmanager
    def passage(self, body: bytes, context: Context) -> Iterator[Passage]:
        """A new passage, on record when the block ends."""
        passage = Passage(body, context)
        self._metrics.in_flight.inc()
        try:
            yield passage
        finally:
            self._metrics.in_flight.dec()
            self._close(passage)

    def retried(self) -> None:
        """A call goes to a second node."""
        self._metrics.retried()

    def _close(self, passage: Passage) -> None:
        duration_s = time.monotonic() - passage.arrived
        labels = self._labels(passage)
        self._metrics.finished(labels, duration_s)
        if passage.code is not grpc.StatusCode.OK:
            self._metrics.failed(_error_label(passage.error))
        decision = passage.decision
        log.info(
            "request_finished",
            request_id=passage.request_id,
            task=labels.task,
            group=labels.group,
            model=labels.model,
            version=labels.version,
            node=decision.node.record.node_id if decision else NONE,
            rule=decision.rule.name if decision else NONE,
            reason=labels.reason,
            code=labels.code,
            error=passage.error,
            duration_s=round(duration_s, 6),
        )

    def _labels(self, passage: Passage) -> CallLabels:
        features, decision = passage.features, passage.decision
        task = TASK_LABELS[features.task] if features else NONE
        code = passage.code.name
        if decision is None:
            return CallLabels(task, NONE, self._model_label(features), NONE, code, NONE)
        record = decision.node.record
        return CallLabels(task, record.group, record.model, record.version, code, decision.reason)

    def _model_label(self, features: Features | None) -> str:
        if features is None or not features.model:
            return NONE
        return features.model if self._tables.table.knows(features.model) else UNKNOWN


def _reasons(error: type[ServiceError]) -> Iterator[str]:
    yield error.reason
    for kind in error.__subclasses__():
        yield from _reasons(kind)


_REASONS = frozenset(_reasons(ServiceError))


def _error_label(reason: str) -> str:
    """The reason as a label; a worker of another make may send any text."""
    return reason if reason in _REASONS else _OTHER if reason else NONE
