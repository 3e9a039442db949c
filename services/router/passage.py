"""One call on its way through the router, and the record that is kept of it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol

import grpc
import grpc.aio
import structlog

from services.chassis.errors import ServiceError
from services.chassis.status import reason_of
from services.router.features import Features
from services.router.metrics import NONE, TASK_LABELS, UNKNOWN, CallLabels, RouterMetrics
from services.router.node import TableNode
from services.router.policy import Decision
from services.router.table import RoutingTable
from services.router.traffic_figures import TrafficFigures

_OTHER = "other"

log = structlog.get_logger()


Context = grpc.aio.ServicerContext[Any, Any]
Check = Callable[[Decision], None]


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
        "check",
        "code",
        "context",
        "decision",
        "error",
        "features",
        "last",
        "request_id",
        "streamed",
        "target",
        "timeout_s",
        "tried",
    )

    def __init__(self, body: bytes, context: Context) -> None:
        self.body = body
        self.context = context
        self.arrived = time.monotonic()
        self.request_id = os.urandom(16).hex()
        """Made here; the caller's takes its place where it gives one."""
        self.check: Check | None = None
        """Raises where the caller may not be served by what was decided."""
        self.features: Features | None = None
        self.decision: Decision | None = None
        self.tried: frozenset[str] = frozenset()
        """Keys of the nodes that the latest try was sent to."""
        self.target = ""
        """The node that an operator wants it to go to, whatever the policy says."""
        self.timeout_s = 0.0
        """Time that its node was given."""
        self.streamed = False
        self.last = b""
        """The last message of its answer, the only one unless it is streamed."""
        self.answered = False
        """Whether a part of the answer has gone out, so that no other node can start anew."""
        self.code = grpc.StatusCode.INTERNAL
        self.error = ""

    def moved_to(self, node: TableNode) -> None:
        """Another node than the one chosen first answers."""
        if self.decision is not None and self.decision.node is not node:
            self.decision = replace(self.decision, node=node)

    def ended(self, code: grpc.StatusCode, error: str = "") -> None:
        """How the call ended; ``error`` is the ErrorInfo reason."""
        self.code = code
        self.error = error


class Journal:
    """Counts and logs each call once, whatever becomes of it."""

    def __init__(
        self, metrics: RouterMetrics, tables: TableSource, traffic: TrafficFigures
    ) -> None:
        self._metrics = metrics
        self._tables = tables
        self._traffic = traffic
        self._in_flight = 0
        metrics.count_in_flight(lambda: self._in_flight)

    @contextmanager
    def passage(self, body: bytes, context: Context) -> Iterator[Passage]:
        """A new passage, on record with how the block ended."""
        passage = Passage(body, context)
        self._in_flight += 1
        try:
            yield passage
        except ServiceError as error:
            passage.ended(error.code, error.reason)
            raise
        except grpc.aio.AioRpcError as error:
            passage.ended(error.code(), reason_of(error))
            raise
        except asyncio.CancelledError:
            passage.ended(_end_by_caller(context))
            raise
        else:
            passage.ended(grpc.StatusCode.OK)
        finally:
            self._in_flight -= 1
            self._close(passage)

    def _close(self, passage: Passage) -> None:
        duration_s = time.monotonic() - passage.arrived
        labels = self._labels(passage)
        self._metrics.finished(labels, duration_s)
        if passage.code is not grpc.StatusCode.OK:
            self._metrics.failed(_error_label(passage.error))
        if passage.decision is not None and not passage.target:
            self._traffic.note(
                (labels.model, labels.version),
                passage.code,
                passage.error,
                duration_s,
                constrained=bool(passage.features and passage.features.constraint),
            )
        decision, features = passage.decision, passage.features
        log.info(
            "request_finished",
            request_id=passage.request_id,
            caller=features.caller if features else "",
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


def _end_by_caller(context: Context) -> grpc.StatusCode:
    """Why the caller's end of a call went away: it was cancelled, or too late."""
    late = context.time_remaining() == 0
    return grpc.StatusCode.DEADLINE_EXCEEDED if late else grpc.StatusCode.CANCELLED


def _reasons(error: type[ServiceError]) -> Iterator[str]:
    yield error.reason
    for kind in error.__subclasses__():
        yield from _reasons(kind)


_REASONS = frozenset(_reasons(ServiceError))


def _error_label(reason: str) -> str:
    """The reason as a label; a worker of another make may send any text."""
    return reason if reason in _REASONS else _OTHER if reason else NONE
