"""Following the status streams of the workers."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Protocol

import grpc.aio
import structlog

from braid.worker.v1 import worker_pb2, worker_pb2_grpc
from services.chassis.backoff import Backoff
from services.router.links import Links

SILENCE_S = 5.0
"""A node says something each second; after this long without it counts as lost."""

SECOND_LOOK_S = 0.5
"""Then this much longer: if it was this process that stood still, the news are waiting."""

CONNECT_S = 2.0
"""Longest wait for a node's first word, and for its inference port."""

STEADY_S = 1.0
"""A stream that lasted this long and breaks is opened again before its node counts as lost."""

log = structlog.get_logger()


class Observer(Protocol):
    """Who is told what a watch sees; ``key`` is the node's registry key."""

    def seen(self, key: str, status: worker_pb2.NodeStatus) -> None:
        """The node sent a status, and its inference port answers."""

    def lost(self, key: str, reason: str) -> None:
        """The node does not answer, until it is seen again."""


class NodeWatches:
    """One status stream for each node that offers it."""

    def __init__(self, tasks: asyncio.TaskGroup, links: Links) -> None:
        self._tasks = tasks
        self._links = links
        self._running: dict[str, asyncio.Task[None]] = {}

    def start(self, key: str, record: worker_pb2.Node, observer: Observer) -> None:
        """Watches the node anew, without regard to a watch of its former self."""
        self.stop(key)
        watch = _NodeWatch(key, record, observer, self._links)
        self._running[key] = self._tasks.create_task(watch.run(), name=f"watch {key}")

    def stop(self, key: str) -> None:
        """Ends the watch; its observer hears nothing more."""
        task = self._running.pop(key, None)
        if task is not None:
            task.cancel()


class _Silence(Exception):
    """Nothing came in time."""


class _NodeWatch:
    def __init__(self, key: str, record: worker_pb2.Node, observer: Observer, links: Links) -> None:
        self._key = key
        self._record = record
        self._observer = observer
        self._links = links
        self._told = False
        """Whether the present stream brought a status."""

    async def run(self) -> None:
        """Follows the stream for ever and opens it again each time it ends."""
        backoff = Backoff()
        while True:
            started, self._told = time.monotonic(), False
            try:
                reason = await self._follow()
                if self._told and time.monotonic() - started > STEADY_S:
                    continue
            except _Silence as silence:
                reason = str(silence)
            self._observer.lost(self._key, reason)
            await asyncio.sleep(backoff.next(time.monotonic() - started))

    async def _follow(self) -> str:
        """Follows one stream until it breaks and says why; raises _Silence."""
        try:
            async with self._links.dial(self._record.admin_address) as channel:
                return await self._read(worker_pb2_grpc.WorkerServiceStub(channel))
        except grpc.aio.AioRpcError as error:
            return f"does not answer: {error.code().name}"
        except _Silence:
            raise
        except Exception as error:
            log.exception("node_watch_failed", node=self._record.node_id)
            return f"does not answer: {type(error).__name__}"

    async def _read(self, worker: worker_pb2_grpc.WorkerServiceStub) -> str:
        call = worker.WatchStatus(worker_pb2.WatchStatusRequest())
        first = await _next(call, CONNECT_S)
        if not await self._links.at(self._record.address).connected(CONNECT_S):
            raise _Silence("does not answer on its inference port")
        message = first
        while message is not grpc.aio.EOF:
            self._told = True
            self._observer.seen(self._key, message.status)
            message = await _next(call, SILENCE_S)
        return "ended its status stream"


async def _next(call: Any, timeout_s: float) -> Any:
    """The stream's next message, or EOF; raises _Silence."""
    reading = asyncio.ensure_future(call.read())
    try:
        for wait_s in (timeout_s, SECOND_LOOK_S):
            if (await asyncio.wait({reading}, timeout=wait_s))[0]:
                return reading.result()
    finally:
        reading.cancel()
    raise _Silence(f"silent for {timeout_s:g} s")
