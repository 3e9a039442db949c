"""A worker whose group is given another version while calls come in, through a router."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import pytest

from braid.inference.v1 import inference_pb2 as pb
from braid.worker.v1 import worker_pb2, worker_pb2_grpc
from services.chassis.channel import open_channel
from services.chassis.status import reason_of
from services.cli.etcd_process import EtcdProcess
from services.generation.types import Paradigm
from tests.checkpoints import record_of, write_checkpoint
from tests.etcd import etcdctl, new_etcd
from tests.eventually import eventually
from tests.router.processes import Router, RouterProcess, connected
from tests.worker_process import START_S, Started, WorkerProcess, put_record

pytestmark = pytest.mark.timeout(300)

NODE = "w"
PAUSE_S = 0.1
"""Between two calls: 10 a second."""


def call(tokens: int = 20) -> pb.GenerateRequest:
    sampling = pb.Sampling(max_new_tokens=tokens, temperature=1.0, seed=1)
    return pb.GenerateRequest(task=pb.TASK_CODE_COMPLETION, prompt="abc", sampling=sampling)


@pytest.fixture(scope="module")
def processes(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[EtcdProcess, RouterProcess, WorkerProcess]]:
    """etcd with four versions on record, a router, and a worker that serves the first."""
    folder = tmp_path_factory.mktemp("versions")
    etcd = new_etcd(folder)
    etcd.start()
    wrong = {"self_test": [{"prompt": "warm", "answer": "this is not what it says"}]}
    for version, card in (("v1", {}), ("v2", {}), ("corrupt", {}), ("untested", wrong)):
        store = write_checkpoint(folder / "store" / version, Paradigm.DIFFUSION, **card)
        record = record_of(store, version=version)
        if version == "corrupt":
            record.files[0].sha256 = "0" * 64
        put_record(etcd, record)
    workers = Started(etcd, folder)
    worker = workers.start(node_id=NODE)
    router = RouterProcess(etcd.endpoint, folder)
    yield etcd, router, worker
    router.kill()
    workers.close()
    etcd.kill()


class Scene:
    """The mesh, and what becomes of the calls that come all the time."""

    def __init__(self, etcd: EtcdProcess, router: Router, worker: WorkerProcess) -> None:
        self.etcd = etcd
        self.router = router
        self.worker = worker
        self.versions: Counter[str] = Counter()
        self.failures: list[str] = []

    async def traffic(self) -> None:
        """A call each PAUSE_S, until cancelled."""
        while True:
            try:
                answer = await self.router.client.Generate(call(), timeout=20)
                self.versions[answer.served_by.version] += 1
            except grpc.aio.AioRpcError as error:
                self.failures.append(f"{error.code().name} {reason_of(error)}")
            await asyncio.sleep(PAUSE_S)

    def want(self, version: str) -> None:
        """What an operator does."""
        record = json.dumps({"group": "diffusion", "version": version})
        etcdctl(self.etcd, "put", "/braid/groups/diffusion", record)

    async def registered_version(self) -> str:
        """The node's version as the router knows it."""
        nodes = await self.router.nodes()
        return nodes[NODE].node.version if NODE in nodes else ""

    async def reason(self) -> str:
        """What the node says of itself on its status stream."""
        async with open_channel(self.worker.admin_address) as channel:
            stub: Any = worker_pb2_grpc.WorkerServiceStub(channel)
            watch = stub.WatchStatus(worker_pb2.WatchStatusRequest())
            status = (await watch.read()).status
            watch.cancel()
        assert status.state == worker_pb2.NODE_STATE_READY
        return str(status.reason)


@pytest.fixture
async def scene(
    processes: tuple[EtcdProcess, RouterProcess, WorkerProcess],
) -> AsyncIterator[Scene]:
    """The mesh once the worker takes calls."""
    etcd, process, worker = processes
    await eventually(worker.is_ready, START_S)
    async with connected(process) as router:
        await eventually(router.serving, START_S)
        await eventually(lambda: router.routable(NODE), START_S)
        yield Scene(etcd, router, worker)


@asynccontextmanager
async def under_traffic(scene: Scene) -> AsyncIterator[None]:
    """Calls all the time, some before and some after; none of them may fail."""
    async with asyncio.TaskGroup() as tasks:
        traffic = tasks.create_task(scene.traffic())
        await eventually(lambda: scene.versions.total() >= 3)
        yield
        seen = scene.versions.total()
        await eventually(lambda: scene.versions.total() >= seen + 3, 30)
        traffic.cancel()
    assert scene.failures == []


@pytest.mark.parametrize(
    ("version", "reason"), [("corrupt", "sha256"), ("untested", "self-test"), ("never", "recorded")]
)
async def test_a_bad_version_changes_nothing(scene: Scene, version: str, reason: str) -> None:
    """The old version serves on without a failure; status and log say why."""

    async def refused() -> bool:
        said = await scene.reason()
        return f"tiny {version} was refused" in said and reason in said

    async with under_traffic(scene):
        scene.want(version)
        await eventually(refused, 60)
    assert set(scene.versions) == {"v1"}
    assert await scene.registered_version() == "v1"
    [logged] = [e for e in scene.worker.events("version_refused") if e["version"].endswith(version)]
    assert reason in logged["reason"]
    assert logged["alert"] is True


async def test_a_good_version_takes_over(scene: Scene) -> None:
    """No call fails; a stream of the old version ends on it; the old one is freed; and back."""
    async with under_traffic(scene):
        stream = scene.router.client.GenerateStream(call(200))
        assert await stream.read()
        scene.want("v2")
        last: Any = None
        while (event := await stream.read()) is not grpc.aio.EOF:
            last = event
        await eventually(lambda: scene.versions["v2"] > 0, 60)
        await eventually(lambda: scene.worker.events("version_freed"), 30)

        async def known() -> bool:
            return await scene.registered_version() == "v2"

        await eventually(known)
    assert last.finished.served_by.version == "v1"
    assert scene.versions["v1"] > 0
    assert await scene.reason() == ""
    async with under_traffic(scene):
        etcdctl(scene.etcd, "del", "/braid/groups/diffusion")
        before = scene.versions["v1"]
        await eventually(lambda: scene.versions["v1"] > before, 60)


async def test_unload_and_load_by_call(scene: Scene) -> None:
    """Drained, a node gives its version up, loads another on demand, and comes back with it."""
    async with open_channel(scene.worker.admin_address) as channel:
        stub: Any = worker_pb2_grpc.WorkerServiceStub(channel)
        v1 = worker_pb2.UnloadModelRequest(model="tiny", version="v1")
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await stub.UnloadModel(v1)
        assert reason_of(refused.value) == "NOT_DRAINED"
        await stub.Drain(worker_pb2.DrainRequest())
        freed = (await stub.UnloadModel(v1)).status
        assert (freed.state, freed.model_loaded) == (worker_pb2.NODE_STATE_DRAINING, False)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await stub.Resume(worker_pb2.ResumeRequest())
        assert reason_of(refused.value) == "NOTHING_LOADED"
        loaded = await stub.LoadModel(worker_pb2.LoadModelRequest(model="tiny", version="v2"))
        assert loaded.status.model_loaded
        resumed = (await stub.Resume(worker_pb2.ResumeRequest())).status
        assert (resumed.state, resumed.accepting) == (worker_pb2.NODE_STATE_READY, True)
    await eventually(lambda: scene.router.routable(NODE))
    answer = await scene.router.client.Generate(call(), timeout=20)
    assert answer.served_by.version == "v2"
