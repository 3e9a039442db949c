"""A worker without a model: speaks the whole contract and answers by script.

``python -m tests.fakes.worker NODE_ID ETCD`` runs one in a process of its own,
registered until it is told to stop, for tests that kill it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import grpc.aio
from google.protobuf.json_format import MessageToDict

from braid.inference.v1 import inference_pb2, inference_pb2_grpc
from braid.worker.v1 import worker_pb2, worker_pb2_grpc
from services.chassis.keys import node_key
from services.chassis.security.tls import Tls, server_credentials_of
from services.chassis.server import RpcServer, ServiceEntry

Context = grpc.aio.ServicerContext[Any, Any]
Script = Callable[[inference_pb2.GenerateRequest], AsyncIterator[str]]

READY = worker_pb2.NodeStatus(
    state=worker_pb2.NODE_STATE_READY,
    model_loaded=True,
    memory_ok=True,
    accepting=True,
    step_seconds=0.01,
    slots=4,
)
DRAINING = worker_pb2.NodeStatus(state=worker_pb2.NODE_STATE_DRAINING)
PIECE_PAUSE_S = 0.05


async def by_prompt(request: inference_pb2.GenerateRequest) -> AsyncIterator[str]:
    """Answers "ok" at once, or after "slow N" N pieces, one each PIECE_PAUSE_S."""
    words = request.prompt.split()
    if words[:1] != ["slow"]:
        yield "ok"
        return
    for index in range(int(words[1])):
        yield f"{index} "
        await asyncio.sleep(PIECE_PAUSE_S)


@dataclass(frozen=True)
class Received:
    """One call as it reached the worker."""

    request: inference_pb2.GenerateRequest
    metadata: dict[str, str | bytes]
    remaining_s: float | None


class FakeWorker:
    """One node. ``script`` may be replaced between calls; it raises to fail a call."""

    def __init__(
        self,
        node_id: str = "w1",
        group: str = "diffusion",
        *,
        model: str = "m",
        version: str = "v1",
        watched: bool = True,
        capabilities: tuple[str, ...] = ("infill", "edit", "seed"),
    ) -> None:
        self.script: Script = by_prompt
        self.received: list[Received] = []
        self.cancelled = asyncio.Event()
        self.usage = inference_pb2.Usage()
        self._watched = watched
        self._status = READY
        self._changed = asyncio.Condition()
        self.record = worker_pb2.Node(
            node_id=node_id,
            group=group,
            paradigm=(
                inference_pb2.PARADIGM_AUTOREGRESSIVE
                if group == "ar"
                else inference_pb2.PARADIGM_DIFFUSION
            ),
            model=model,
            version=version,
            capabilities=capabilities,
            max_context=512,
        )

    @property
    def key(self) -> str:
        """The node's registry key."""
        return node_key(self.record.group, self.record.node_id)

    @property
    def value(self) -> bytes:
        """The node's record as it stands in the registry."""
        return json.dumps(MessageToDict(self.record, preserving_proto_field_name=True)).encode()

    def value_at(self, epoch: int) -> bytes:
        """The same with the epoch of a registration."""
        self.record.epoch = epoch
        return self.value

    async def start(self, port: int = 0, admin_port: int = 0, tls: Tls | None = None) -> None:
        """Listens on both ports, free ones if none are given."""
        self._inference = RpcServer(
            f"127.0.0.1:{port}",
            [
                ServiceEntry(
                    "braid.inference.v1.InferenceService",
                    inference_pb2_grpc.add_InferenceServiceServicer_to_server,
                    _Inference(self),
                )
            ],
            credentials=server_credentials_of(tls),
        )
        self._admin = RpcServer(
            f"127.0.0.1:{admin_port}",
            [
                ServiceEntry(
                    "braid.worker.v1.WorkerService",
                    worker_pb2_grpc.add_WorkerServiceServicer_to_server,
                    _Management(self),
                    lasting=frozenset({"WatchStatus"}),
                )
            ],
            credentials=server_credentials_of(tls),
        )
        self.port = await self._inference.start(serving=True)
        self.admin_port = await self._admin.start(serving=True)
        self.record.address = f"127.0.0.1:{self.port}"
        self.record.admin_address = f"127.0.0.1:{self.admin_port}" if self._watched else ""

    async def stop(self, grace_s: float = 0.0) -> None:
        """Closes both ports; calls that run longer than ``grace_s`` are cut."""
        await self._admin.stop(0)
        await self._inference.stop(grace_s)

    async def report(self, status: worker_pb2.NodeStatus) -> None:
        """Sends a status to whoever watches."""
        async with self._changed:
            self._status = status
            self._changed.notify_all()

    async def statuses(self) -> AsyncIterator[worker_pb2.NodeStatus]:
        """The status now and whenever it changes, at least each second."""
        while True:
            status = self._status
            yield status
            async with self._changed:
                try:
                    async with asyncio.timeout(1.0):
                        await self._changed.wait_for(lambda: self._status is not status)  # noqa: B023
                except TimeoutError:
                    continue


class _Inference(inference_pb2_grpc.InferenceServiceServicer):
    def __init__(self, worker: FakeWorker) -> None:
        self._worker = worker

    async def Generate(
        self, request: inference_pb2.GenerateRequest, context: Context
    ) -> inference_pb2.GenerateResponse:
        pieces = [piece async for piece in self._pieces(request, context)]
        return inference_pb2.GenerateResponse(
            request_id=request.request_id,
            text="".join(pieces),
            served_by=self._served_by(),
            usage=self._worker.usage,
        )

    async def GenerateStream(
        self, request: inference_pb2.GenerateRequest, context: Context
    ) -> AsyncIterator[inference_pb2.GenerateStreamResponse]:
        async for piece in self._pieces(request, context):
            yield inference_pb2.GenerateStreamResponse(delta=inference_pb2.Delta(text=piece))
        yield inference_pb2.GenerateStreamResponse(
            finished=inference_pb2.Finished(served_by=self._served_by(), usage=self._worker.usage)
        )

    async def _pieces(
        self, request: inference_pb2.GenerateRequest, context: Context
    ) -> AsyncIterator[str]:
        metadata = dict(context.invocation_metadata() or ())
        self._worker.received.append(Received(request, metadata, context.time_remaining()))
        try:
            async for piece in self._worker.script(request):
                yield piece
        except (asyncio.CancelledError, GeneratorExit):
            self._worker.cancelled.set()
            raise

    def _served_by(self) -> inference_pb2.ServedBy:
        record = self._worker.record
        return inference_pb2.ServedBy(
            node_id=record.node_id,
            group=record.group,
            model=record.model,
            version=record.version,
            paradigm=record.paradigm,
        )


class _Management(worker_pb2_grpc.WorkerServiceServicer):
    def __init__(self, worker: FakeWorker) -> None:
        self._worker = worker

    async def WatchStatus(
        self, _request: worker_pb2.WatchStatusRequest, _context: Context
    ) -> AsyncIterator[worker_pb2.WatchStatusResponse]:
        async for status in self._worker.statuses():
            yield worker_pb2.WatchStatusResponse(status=status)


async def _run(node_id: str, etcd: str) -> None:
    from services.chassis.registration import Registration
    from services.chassis.registry import Registry
    from services.chassis.settings import EtcdSettings

    worker = FakeWorker(node_id)
    await worker.start()
    async with Registry(EtcdSettings(etcd=etcd)) as registry:
        await Registration(registry, worker.key, worker.value_at, ttl_s=3).run()


if __name__ == "__main__":
    asyncio.run(_run(*sys.argv[1:]))
