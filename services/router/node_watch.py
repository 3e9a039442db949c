"""Following the status streams of the workers."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

import grpc.aio
import structlog

from braid.worker.v1 import worker_pb2, worker_pb2_grpc
from services.chassis.backoff import Backoff
from services.chassis.channel import open_channel
from services.router.links import Links

SILENCE_S = 5.0
"""A node says something each second; after this long without it counts as lost."""

CONNECT_S = 2.0

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


class _NodeWatch:
    def __init__(self, key: str, record: worker_pb2.Node, observer: Observer, links: Links) -> None:
        self._key = key
        self._record = record
        self._observer = observer
        self._links = links

    async def run(self) -> None:
        """Follows the stream for ever and opens it again each time it ends."""
        backoff = Backoff()
        while True:
            started = time.monotonic()
            self._observer.lost(self._key, await self._follow())
            await asyncio.sleep(backoff.next(time.monotonic() - started))

    async def _follow(self) -> str:
        """Follows one stream to its end and says why it ended."""
        try:
            async with open_channel(self._record.admin_address) as channel:
                return await self._read(worker_pb2_grpc.WorkerServiceStub(channel))
        except grpc.aio.AioRpcError as error:
            return f"does not answer: {error.code().name}"
        except TimeoutError:
            return f"silent for {SILENCE_S:g} s"
        except Exception as error:
            log.exception("node_watch_failed", node=self._record.node_id)
            return f"does not answer: {type(error).__name__}"

    async def _read(self, worker: worker_pb2_grpc.WorkerServiceStub) -> str:
        call = worker.WatchStatus(worker_pb2.WatchStatusRequest())
        first = True
        while True:
            async with asyncio.timeout(SILENCE_S):
                message = await call.read()
            if message is grpc.aio.EOF:
                return "ended its status stream"
            if first and not await self._links.at(self._record.address).connected(CONNECT_S):
                return "does not answer on its inference port"
            first = False
            self._observer.seen(self._key, message.status)
