"""Worker processes under clients that leave, deadlines, a rival for the port, a scale-down."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import grpc
import grpc.aio
import psutil
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from braid.inference.v1 import inference_pb2 as pb
from braid.inference.v1 import inference_pb2_grpc
from services.chassis.channel import open_channel
from services.chassis.status import reason_of
from services.generation.types import Paradigm
from tests.checkpoints import record_of, write_checkpoint
from tests.etcd import new_etcd
from tests.eventually import eventually
from tests.router.processes import Router, RouterProcess, connected
from tests.worker_process import START_S, Started, WorkerProcess, put_record

pytestmark = pytest.mark.timeout(400)

SLOTS = 8
CONTEXT = 4096
LONG = 3000
"""Tokens of an answer that takes seconds."""
ROOM = 64 * 2**20
"""Bytes that a process may grow by for streams that wait for their readers."""
RUNNING, WAITING = "braid_num_requests_running", "braid_num_requests_waiting"


def letters(count: int) -> pb.GenerateRequest:
    """A request whose answer is so many letters, one token each."""
    return pb.GenerateRequest(
        task=pb.TASK_MATH,
        prompt="abc",
        sampling=pb.Sampling(max_new_tokens=count, seed=1),
        constraint=pb.Constraint(regex=f"[a-z]{{{count}}}"),
    )


class Fleet:
    """Three workers behind a router."""

    def __init__(self, workers: Started, router: RouterProcess) -> None:
        self.workers = workers
        self.router = router
        self.nodes = {name: self.start(name) for name in ("a", "b", "c")}

    def start(self, node_id: str, **environment: object) -> WorkerProcess:
        """A worker of the model with a long context."""
        settings = {"slots": SLOTS, "max_new_tokens": CONTEXT, "call_timeout_s": 2} | environment
        return self.workers.start("ar", node_id=node_id, model="long", **settings)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """The processes, on their way up."""
    folder = tmp_path_factory.mktemp("fleet")
    etcd = new_etcd(folder)
    etcd.start()
    store = write_checkpoint(folder / "store", Paradigm.AUTOREGRESSIVE, max_context=CONTEXT)
    put_record(etcd, record_of(store, "long"))
    workers, router = Started(etcd, folder), RouterProcess(etcd.endpoint, folder)
    yield Fleet(workers, router)
    workers.close()
    router.kill()
    etcd.kill()


@pytest.fixture
async def worker(fleet: Fleet) -> WorkerProcess:
    """Node a, once it is ready."""
    await eventually(fleet.nodes["a"].is_ready, START_S)
    return fleet.nodes["a"]


@pytest.fixture
async def stub(worker: WorkerProcess) -> AsyncIterator[Any]:
    """Its InferenceService."""
    async with open_channel(worker.address) as channel:
        yield inference_pb2_grpc.InferenceServiceStub(channel)


async def code_of(call: Any) -> tuple[str, str]:
    """How a call fails."""
    with pytest.raises(grpc.aio.AioRpcError) as ended:
        await call
    return ended.value.code().name, reason_of(ended.value)


def idle(worker: WorkerProcess) -> bool:
    """Whether nothing runs and nothing waits."""
    return worker.metric(RUNNING) == worker.metric(WAITING) == 0


async def test_clients_that_leave_the_queue_cost_nothing(worker: WorkerProcess, stub: Any) -> None:
    """Of 20 that wait 19 leave: the gauge shows it, and a new call waits for at most one."""
    running = [asyncio.ensure_future(stub.Generate(letters(500), timeout=60)) for _ in range(SLOTS)]
    await eventually(lambda: worker.metric(RUNNING) == SLOTS)
    waiting = [asyncio.ensure_future(stub.Generate(letters(500), timeout=60)) for _ in range(20)]
    await eventually(lambda: worker.metric(WAITING) == 20)
    for call in waiting[1:]:
        call.cancel()
    await eventually(lambda: worker.metric(WAITING) <= 1)
    answer = await stub.Generate(letters(5), timeout=60)
    assert len(answer.text) == 5
    ends = await asyncio.gather(*running, waiting[0])
    assert {len(end.text) for end in ends} == {500}
    await eventually(lambda: idle(worker))


@pytest.mark.parametrize("timeout", [1.0, 0.001])
async def test_a_deadline_stops_the_work(worker: WorkerProcess, stub: Any, timeout: float) -> None:
    """The call ends DEADLINE_EXCEEDED, and the engine has nothing left to do for it."""
    assert (await code_of(stub.Generate(letters(LONG), timeout=timeout)))[0] == "DEADLINE_EXCEEDED"
    await eventually(lambda: idle(worker))
    assert len((await stub.Generate(letters(5), timeout=60)).text) == 5


async def test_a_call_without_a_deadline_gets_the_servers(worker: WorkerProcess, stub: Any) -> None:
    """Nobody computes for ever: BRAID_CALL_TIMEOUT_S ends what names no end."""
    calls = [stub.Generate(letters(CONTEXT - 100)) for _ in range(SLOTS)]
    assert await code_of(calls[0]) == ("DEADLINE_EXCEEDED", "DEADLINE_EXCEEDED")
    await eventually(lambda: idle(worker))


async def test_a_rival_for_the_port_leaves_the_owner_alone(
    fleet: Fleet, worker: WorkerProcess, stub: Any
) -> None:
    """A second worker on the port ends with an error; every answer is the first one's."""
    rival = fleet.start("rival", port=worker.address.rpartition(":")[2])
    nodes = list[str]()
    while rival.exit_code is None or len(nodes) < 100:
        nodes.append((await stub.Generate(letters(2), timeout=60)).served_by.node_id)
    assert rival.exit_code == 1
    assert set(nodes) == {"a"}
    assert "rival" not in fleet.workers.nodes()


@pytest.fixture
async def router(fleet: Fleet) -> AsyncIterator[Router]:
    """The router, once it knows all three."""
    async with connected(fleet.router) as router:
        await eventually(lambda: router.routable("a", "b", "c"), START_S)
        yield router


async def steady(router: Router, failures: list[str]) -> None:
    """Ten short calls a second, until cancelled."""
    while True:
        try:
            await router.client.Generate(letters(5), timeout=30)
        except grpc.aio.AioRpcError as error:
            failures.append(f"{error.code().name} {reason_of(error)}")
        await asyncio.sleep(0.1)


async def text_of(stream: Any) -> str:
    """What a stream brings, to its end."""
    text = ""
    while (event := await stream.read()) is not grpc.aio.EOF:
        text += event.delta.text
    return text


async def test_slow_readers_cost_no_memory(fleet: Fleet, router: Router) -> None:
    """20 streams that nobody reads hold neither a fast call up nor memory, and lose nothing."""
    expected = (await router.client.Generate(letters(1000), timeout=120)).text
    parts = [
        psutil.Process(pid) for pid in (fleet.router.pid, *(n.pid for n in fleet.nodes.values()))
    ]
    streams = [router.client.GenerateStream(letters(1000), timeout=300) for _ in range(20)]
    starts = [(await stream.read()).delta.text for stream in streams]
    before = [part.memory_info().rss for part in parts]
    fast = await router.client.Generate(letters(100), timeout=120)
    await eventually(lambda: all(map(idle, fleet.nodes.values())), 120)
    grown = [part.memory_info().rss - was for part, was in zip(parts, before, strict=True)]
    rest = await asyncio.gather(*map(text_of, streams))
    assert fast.text == expected[:100]
    assert {start + text for start, text in zip(starts, rest, strict=True)} == {expected}
    assert max(grown) < ROOM


async def stopped(worker: WorkerProcess) -> None:
    """Asks it to stop and waits until it has ended."""
    worker.terminate()
    await eventually(lambda: worker.exit_code is not None, 60)


async def test_a_scale_down_fails_nobody(fleet: Fleet, router: Router) -> None:
    """Workers that are told to stop finish their streams, get nothing new, and exit 0."""
    failures = list[str]()
    async with asyncio.TaskGroup() as tasks:
        traffic = tasks.create_task(steady(router, failures))
        streams = [router.client.GenerateStream(letters(800), timeout=120) for _ in range(20)]
        texts = [tasks.create_task(text_of(stream)) for stream in streams]
        for name in ("a", "b"):
            await stopped(fleet.nodes[name])
        await asyncio.gather(*texts)
        traffic.cancel()
    assert {len(text.result()) for text in texts} == {800}
    assert failures == []
    assert [fleet.nodes[name].exit_code for name in ("a", "b")] == [0, 0]
    assert fleet.workers.nodes().keys() == {"c"}


async def test_an_open_health_watch_holds_no_stop(fleet: Fleet) -> None:
    """It hears NOT_SERVING and ends; the call under way is answered in full; exit 0."""
    last = fleet.nodes["c"]
    async with open_channel(last.address) as channel:
        health: Any = health_pb2_grpc.HealthStub(channel)
        watch = health.Watch(health_pb2.HealthCheckRequest())
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
        client: Any = inference_pb2_grpc.InferenceServiceStub(channel)
        call = asyncio.ensure_future(client.Generate(letters(800), timeout=60))
        await eventually(lambda: last.metric(RUNNING) == 1)
        last.terminate()
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
        assert len((await call).text) == 800
        await eventually(lambda: last.exit_code is not None, 20)
    assert last.exit_code == 0
    [drained] = last.events("drained")
    assert drained["finished"] is True
