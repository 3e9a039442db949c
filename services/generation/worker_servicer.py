"""WorkerService: what a node is, how it fares, and taking it out of service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc.aio

from braid.worker.v1 import worker_pb2, worker_pb2_grpc
from services.chassis.errors import InvalidRequest, NotReady
from services.chassis.ids import FORM, is_id, is_version
from services.chassis.violations import Violations
from services.generation.departure import Departure
from services.generation.limits import Limits
from services.generation.node_status import StatusBoard, StatusFeed
from services.generation.reception import Reception
from services.generation.record import NodeRecord
from services.generation.residence import Residence
from services.generation.types import VersionName

LEAST_PAUSE_S = 0.02
BUSY_PAUSE_S = 0.1
"""Between two statuses while calls run: their remaining work shrinks all the time."""
IDLE_PAUSE_S = 1.0
MAX_GRACE_S = 3600

Context = grpc.aio.ServicerContext[Any, Any]

_ENDS = (worker_pb2.NODE_STATE_STOPPED, worker_pb2.NODE_STATE_FAILED)


class WorkerServicer(worker_pb2_grpc.WorkerServiceServicer):
    """The management of one worker."""

    def __init__(
        self,
        record: NodeRecord,
        reception: Reception,
        board: StatusBoard,
        feed: StatusFeed,
        departure: Departure,
    ) -> None:
        self._record = record
        self._reception = reception
        self._board = board
        self._feed = feed
        self._departure = departure
        self.residence: Residence | None = None
        """Who loads and frees; there is nobody before the node has started."""

    async def Describe(
        self, _message: worker_pb2.DescribeRequest, _context: Context
    ) -> worker_pb2.DescribeResponse:
        """The node's record, status and limits."""
        response = worker_pb2.DescribeResponse(
            node=self._record.node(), status=self._board.status()
        )
        model = self._reception.model
        if model is not None:
            response.weights_uri = model.weights_uri
            response.parameters_total = model.card.parameters_total
            response.parameters_active = model.card.parameters_active
            response.family = model.card.family
            response.limits.CopyFrom(_limits_to_proto(model.limits))
        return response

    async def WatchStatus(
        self, _message: worker_pb2.WatchStatusRequest, _context: Context
    ) -> AsyncIterator[worker_pb2.WatchStatusResponse]:
        """Statuses at each change and at least each second, until the node has stopped."""
        with self._feed.watching() as watcher:
            while True:
                watcher.sending()
                status = self._board.status()
                yield worker_pb2.WatchStatusResponse(status=status)
                watcher.sent()
                if status.state in _ENDS:
                    return
                await asyncio.sleep(LEAST_PAUSE_S)
                busy = status.running or status.queued
                await watcher.changed(BUSY_PAUSE_S if busy else IDLE_PAUSE_S)

    async def Drain(
        self, message: worker_pb2.DrainRequest, _context: Context
    ) -> worker_pb2.DrainResponse:
        """Drains; answers when the node is idle or the grace is over."""
        grace_s = message.grace_seconds if message.HasField("grace_seconds") else None
        if grace_s is not None and grace_s > MAX_GRACE_S:
            raise InvalidRequest.field("grace_seconds", f"must be 0 to {MAX_GRACE_S}")
        await self._departure.drain("drained by an operator", grace_s)
        return worker_pb2.DrainResponse(status=self._board.status())

    async def Resume(
        self, _message: worker_pb2.ResumeRequest, _context: Context
    ) -> worker_pb2.ResumeResponse:
        """Back into service."""
        await self._departure.resume()
        return worker_pb2.ResumeResponse(status=self._board.status())

    async def LoadModel(
        self, message: worker_pb2.LoadModelRequest, _context: Context
    ) -> worker_pb2.LoadModelResponse:
        """Answers once the version serves."""
        await self._started().serve(_version(message))
        return worker_pb2.LoadModelResponse(status=self._board.status())

    async def UnloadModel(
        self, message: worker_pb2.UnloadModelRequest, _context: Context
    ) -> worker_pb2.UnloadModelResponse:
        """Answers once the version is freed."""
        await self._started().unload(_version(message))
        return worker_pb2.UnloadModelResponse(status=self._board.status())

    def _started(self) -> Residence:
        if self.residence is None:
            raise NotReady("the node is starting")
        return self.residence


def _version(
    message: worker_pb2.LoadModelRequest | worker_pb2.UnloadModelRequest,
) -> VersionName:
    faults = Violations()
    faults.require(is_id(message.model), "model", FORM)
    faults.require(is_version(message.version), "version", FORM)
    faults.raise_if_any()
    return VersionName(message.model, message.version)


def _limits_to_proto(limits: Limits) -> worker_pb2.RuntimeLimits:
    return worker_pb2.RuntimeLimits(
        max_steps=limits.max_steps,
        max_batch_size=limits.max_batch_size,
        max_concurrency=limits.max_concurrency,
        queue_length=limits.queue_length,
        max_new_tokens=limits.max_new_tokens,
        max_context=limits.max_context,
        confidence_threshold=limits.confidence_threshold or 0.0,
        strategy=limits.strategy or "",
        factor=limits.factor,
        entropy_bound=limits.entropy_bound,
    )
