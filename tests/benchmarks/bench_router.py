"""CPU of the router per call, open and with callers, against a bare grpc.aio byte proxy.

``python -m tests.benchmarks.bench_router``

All run in processes of their own before the same worker without a model and
take turns; the table shows medians over the rounds.
"""

from __future__ import annotations

import asyncio
import json
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

from braid.config.v1 import config_pb2
from braid.inference.v1 import inference_pb2, inference_pb2_grpc
from braid.worker.v1.worker_pb2 import NODE_STATE_READY, NodeStatus
from services.chassis.channel import open_channel
from services.chassis.registry import Registry
from tests.callers import known
from tests.etcd import new_etcd, settings_for
from tests.eventually import eventually
from tests.fakes.worker import FakeWorker
from tests.ports import free_port
from tests.router.processes import joined, running_router

ROOMY = NodeStatus(
    state=NODE_STATE_READY, model_loaded=True, memory_ok=True, accepting=True, slots=64
)
"""A worker with room for every call, so that none waits in the router."""

ROUNDS = 8
CALLS = 400
CONCURRENCY = 8
PIECES = 8
RULES = 20

REQUEST = inference_pb2.GenerateRequest(
    task=inference_pb2.TASK_CODE_COMPLETION,
    infill=inference_pb2.Infill(prefix="def area(r):\n    " * 10, suffix="print(area(3))\n"),
    sampling=inference_pb2.Sampling(max_new_tokens=64, temperature=0.2, stop=["\n\n"]),
    labels={"session": "editor-17"},
)

RESTRICTED = {"BRAID_ACCESS": "callers"}
ALLOWED = config_pb2.Allowed(
    tasks=[REQUEST.task], models=["m"], groups=["diffusion"], networks=["127.0.0.0/8"]
)
QUOTA = config_pb2.Quota(
    requests_per_second=100_000, concurrency=10_000, tokens_per_minute=1_000_000_000
)
"""Everything is counted and nothing refused."""

Stub = inference_pb2_grpc.InferenceServiceStub
Call = Callable[["Target"], Awaitable[object]]


@dataclass
class Target:
    """One proxy and what it cost: CPU and latency of a call in microseconds, by kind."""

    name: str
    pid: int
    stub: Stub
    metadata: tuple[tuple[str, str], ...] = ()
    cpu_us: dict[str, list[float]] = field(default_factory=dict)
    latency_us: dict[str, list[float]] = field(default_factory=dict)


async def unary(target: Target) -> None:
    """One call answered whole."""
    await target.stub.Generate(REQUEST, timeout=30, metadata=target.metadata)


async def stream(target: Target) -> None:
    """One call answered in PIECES messages and an end."""
    call = target.stub.GenerateStream(REQUEST, timeout=30, metadata=target.metadata)
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


def policy() -> bytes:
    """Rules of every kind, none of which takes the request."""
    route = {"groups": [{"group": "diffusion"}]}
    matches = (
        lambda i: {"tasks": ["TASK_CODE_COMPLETION"], "models": [f"m{i}"]},
        lambda i: {"labels": {"team": f"t{i}"}},
        lambda i: {"callers": [f"c{i}"]},
        lambda i: {"min_prompt_bytes": 10_000 + i},
        lambda i: {"tasks": ["TASK_CHAT"], "max_new_tokens": i + 1},
    )
    rules = [
        {"name": f"r{i}", "match": matches[i % len(matches)](i), "route": route}
        for i in range(RULES)
    ]
    return json.dumps({"rules": rules, "default": route}).encode()


async def measure(target: Target, kind: str) -> None:
    """One round of one kind of call."""
    latencies: list[float] = []

    async def caller() -> None:
        for _ in range(CALLS // CONCURRENCY):
            started = time.perf_counter()
            await KINDS[kind](target)
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
            running_router(etcd.endpoint, folder, RESTRICTED) as guarded,
            bare_proxy(worker.record.address) as bare,
        ):
            caller = known("bench", config_pb2.Caller(allowed=ALLOWED, quota=QUOTA))
            await registry.put(caller.key, caller.value)
            await registry.put("/braid/policy", policy())
            await joined(router, registry, worker)
            targets = [
                bare,
                Target("braid-router", router.process.pid, router.client),
                Target("key and quota", guarded.process.pid, guarded.client, caller.metadata),
            ]
            await eventually(lambda: answers(targets[-1]))
            for _ in range(ROUNDS):
                for kind in KINDS:
                    for target in targets:
                        await measure(target, kind)
            report(targets)
    finally:
        etcd.kill()
        await worker.stop()


async def answers(target: Target) -> bool:
    """Whether a call is served now."""
    try:
        await unary(target)
    except grpc.aio.AioRpcError:
        return False
    return True


def report(targets: list[Target]) -> None:
    """Prints medians, without the first round, which warms everything up."""
    print(f"medians of {ROUNDS - 1} rounds of {CALLS} calls, {CONCURRENCY} at once")
    print(f"{'call':8}{'proxy':14}{'CPU us':>8}{'ratio':>8}{'p50 us':>9}")
    for kind in KINDS:
        base = statistics.median(targets[0].cpu_us[kind][1:])
        for target in targets:
            cpu = statistics.median(target.cpu_us[kind][1:])
            latency = statistics.median(target.latency_us[kind][1:])
            print(f"{kind:8}{target.name:14}{cpu:8.0f}{cpu / base:8.2f}{latency:9.0f}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        asyncio.run(run(Path(name)))
