"""CPU of the router per call, against a bare grpc.aio byte proxy.

``python -m tests.benchmarks.bench_router``

Both run in processes of their own before the same worker without a model and
take turns; the table shows medians over the rounds.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc.aio

from braid.inference.v1 import inference_pb2, inference_pb2_grpc
from braid.worker.v1.worker_pb2 import NODE_STATE_READY, NodeStatus
from services.chassis.channel import open_channel
from services.chassis.registry import Registry
from tests.etcd import free_port, new_etcd, settings_for
from tests.fakes.worker import FakeWorker
from tests.router.processes import joined, running_router

ROOMY = NodeStatus(
    state=NODE_STATE_READY, model_loaded=True, memory_ok=True, accepting=True, slots=64
)
"""A worker with room for every call, so that none waits in the router."""

ROUNDS = 8
CALLS = 400
CONCURRENCY = 8
PIECES = 8

REQUEST = inference_pb2.GenerateRequest(
    task=inference_pb2.TASK_CODE_COMPLETION,
    infill=inference_pb2.Infill(prefix="def area(r):\n    " * 10, suffix="print(area(3))\n"),
    sampling=inference_pb2.Sampling(max_new_tokens=64, temperature=0.2, stop=["\n\n"]),
    labels={"session": "editor-17"},
)

Stub = inference_pb2_grpc.InferenceServiceStub
Call = Callable[[Stub], Awaitable[object]]


@dataclass
class Target:
    """One proxy and what it cost: CPU and latency of a call in microseconds, by kind."""

    name: str
    pid: int
    stub: Stub
    cpu_us: dict[str, list[float]] = field(default_factory=dict)
    latency_us: dict[str, list[float]] = field(default_factory=dict)


async def unary(stub: Stub) -> None:
    """One call answered whole."""
    await stub.Generate(REQUEST, timeout=30)


async def stream(stub: Stub) -> None:
    """One call answered in PIECES messages and an end."""
    call = stub.GenerateStream(REQUEST, timeout=30)
    while await call.read() is not grpc.aio.EOF:
        pass


KINDS: dict[str, Call] = {"unary": unary, "stream": stream}


async def answer(_request: inference_pb2.GenerateRequest) -> AsyncIterator[str]:
    """What the worker answers at once."""
    for _ in range(PIECES):
        yield "x = 1\n"


def cpu_s(pid: int) -> float:
    """CPU time that a process's threads have used, to the nanosecond."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


async def measure(target: Target, kind: str) -> None:
    """One round of one kind of call."""
    latencies: list[float] = []

    async def caller() -> None:
        for _ in range(CALLS // CONCURRENCY):
            started = time.perf_counter()
            await KINDS[kind](target.stub)
            latencies.append(time.perf_counter() - started)

    before = cpu_s(target.pid)
    await asyncio.gather(*(caller() for _ in range(CONCURRENCY)))
    target.cpu_us.setdefault(kind, []).append((cpu_s(target.pid) - before) / CALLS * 1e6)
    target.latency_us.setdefault(kind, []).append(statistics.median(latencies) * 1e6)


@asynccontextmanager
async def bare_proxy(upstream: str) -> AsyncIterator[Target]:
    """The bare proxy in a process of its own."""
    port = free_port()
    command = [sys.executable, "-m", "tests.benchmarks.bare_proxy", str(port), upstream]
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(command, env=environ)  # noqa: ASYNC220, forking takes no time
    try:
        async with open_channel(f"127.0.0.1:{port}") as channel:
            await channel.channel_ready()
            yield Target("bare proxy", process.pid, Stub(channel))
    finally:
        process.kill()
        process.wait()


async def run(folder: Path) -> None:
    """Starts everything, measures in turn and prints the table."""
    worker = FakeWorker("w1")
    worker.script = answer
    await worker.start()
    await worker.report(ROOMY)
    etcd = new_etcd(folder)
    etcd.start()
    try:
        async with (
            Registry(settings_for(etcd.endpoint)) as registry,
            running_router(etcd.endpoint, folder) as router,
            bare_proxy(worker.record.address) as bare,
        ):
            await joined(router, registry, worker)
            braid = Target("braid-router", router.process.pid, router.client)
            for _ in range(ROUNDS):
                for kind in KINDS:
                    for target in (bare, braid):
                        await measure(target, kind)
            report(bare, braid)
    finally:
        etcd.kill()
        await worker.stop()


def report(bare: Target, braid: Target) -> None:
    """Prints medians, without the first round, which warms everything up."""
    print(f"medians of {ROUNDS - 1} rounds of {CALLS} calls, {CONCURRENCY} at once")
    print(f"{'call':8}{'proxy':14}{'CPU us':>8}{'ratio':>8}{'p50 us':>9}")
    for kind in KINDS:
        base = statistics.median(bare.cpu_us[kind][1:])
        for target in (bare, braid):
            cpu = statistics.median(target.cpu_us[kind][1:])
            latency = statistics.median(target.latency_us[kind][1:])
            print(f"{kind:8}{target.name:14}{cpu:8.0f}{cpu / base:8.2f}{latency:9.0f}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        asyncio.run(run(Path(name)))
