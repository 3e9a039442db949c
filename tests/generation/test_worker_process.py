"""Whole worker processes: registration, probes, hot limits, faults and every way to stop."""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from braid.inference.v1 import inference_pb2 as pb
from braid.inference.v1 import inference_pb2_grpc
from braid.worker.v1 import worker_pb2, worker_pb2_grpc
from services.chassis.channel import open_channel
from services.chassis.status import reason_of
from services.chassis.strategies import PARAMETER_OF
from services.cli.etcd_process import EtcdProcess
from tests.checkpoints import CARD, record_of
from tests.etcd import etcdctl, new_etcd
from tests.eventually import eventually
from tests.gemma import write_gemma
from tests.published import EXPERTS, write_published
from tests.worker_process import MODULES, ROOT, START_S, TTL_S, Started, WorkerProcess, put_record

pytestmark = pytest.mark.timeout(300)
"""Starting a process imports torch, which takes a while on a busy machine."""

FAMILIES = {"diffusion": "diffusion_checkpoint", "ar": "ar_checkpoint"}


@pytest.fixture(scope="module")
def module_etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdProcess]:
    """An etcd whose keys stay for the whole module."""
    etcd = new_etcd(tmp_path_factory.mktemp("etcd"))
    etcd.start()
    yield etcd
    etcd.kill()


@pytest.fixture(scope="module")
def started(
    module_etcd: EtcdProcess,
    tmp_path_factory: pytest.TempPathFactory,
    diffusion_checkpoint: Path,
    ar_checkpoint: Path,
) -> Iterator[Started]:
    """Starts workers of the tiny models."""
    put_record(module_etcd, record_of(diffusion_checkpoint))
    put_record(module_etcd, record_of(ar_checkpoint, "tiny-ar"))
    workers = Started(module_etcd, tmp_path_factory.mktemp("workers"))
    yield workers
    workers.close()


@pytest.fixture(scope="module")
def steady_process(started: Started) -> WorkerProcess:
    """One diffusion worker for all tests that leave it as it is."""
    return started.start(node_id="steady", labels="rack=r1", weight=50)


@pytest.fixture
async def steady(started: Started, steady_process: WorkerProcess) -> WorkerProcess:
    """That worker, in the registry."""
    await eventually(steady_process.is_ready, START_S)
    await eventually(lambda: "steady" in started.nodes())
    return steady_process


@pytest.fixture
async def stub(steady: WorkerProcess) -> AsyncIterator[Any]:
    """Its InferenceService."""
    async with open_channel(steady.address) as channel:
        yield inference_pb2_grpc.InferenceServiceStub(channel)


def long_call(tokens: int = 200) -> pb.GenerateRequest:
    return pb.GenerateRequest(
        prompt="abc", sampling=pb.Sampling(max_new_tokens=tokens, temperature=1.0, seed=1)
    )


async def code_of(call: Any) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value.code(), reason_of(caught.value)


async def test_record_says_what_the_node_is(started: Started, steady: WorkerProcess) -> None:
    """The registry record has every fact that routers and operators need."""
    node = started.nodes()["steady"]
    assert node["group"] == "diffusion"
    assert (node["address"], node["admin_address"]) == (steady.address, steady.admin_address)
    assert (node["model"], node["version"]) == ("tiny", "v1")
    assert node["paradigm"] == "PARADIGM_DIFFUSION"
    assert (node["weight"], node["labels"]) == (50, {"rack": "r1"})
    assert node["capabilities"] == sorted(CARD["capabilities"])
    assert node["max_context"] == 256
    assert int(node["epoch"]) > 0


async def test_probes_of_a_ready_node(steady: WorkerProcess) -> None:
    """A ready node says so on /ready with its three flags, and by gRPC health."""
    status, flags = steady.readiness()
    assert status == 200
    assert flags == {"model_loaded": True, "memory_ok": True, "accepting": True, "reason": ""}
    async with open_channel(steady.address) as channel:
        health: Any = health_pb2_grpc.HealthStub(channel)
        for service in ("", "braid.inference.v1.InferenceService"):
            answer = await health.Check(health_pb2.HealthCheckRequest(service=service))
            assert answer.status == health_pb2.HealthCheckResponse.SERVING


async def test_stations_were_logged_in_order(steady: WorkerProcess) -> None:
    """The log shows each station of the start once."""
    states = [event["state"] for event in steady.events("node_state")]
    order = ["FETCHING", "VERIFYING", "LOADING", "WARMING", "READY"]
    assert [state for state in order if state in states] == order
    assert steady.metric("braid_warmup_seconds") > 0


async def test_grpcurl_describes_by_reflection(steady: WorkerProcess) -> None:
    """grpcurl lists and calls the management port without any proto file."""
    services = await grpcurl(steady.admin_address, "list")
    assert "braid.worker.v1.WorkerService" in services.split()
    method = "braid.worker.v1.WorkerService/Describe"
    described = json.loads(await grpcurl(steady.admin_address, method))
    assert described["node"]["node_id"] == "steady"
    assert described["status"]["state"] == "NODE_STATE_READY"
    assert described["limits"]["max_batch_size"] == 4
    assert described["family"] == "masked_block_diffusion"


async def grpcurl(address: str, *arguments: str) -> str:
    program = Path(sys.executable).with_name("grpcurl")
    process = await asyncio.create_subprocess_exec(
        program, "-plaintext", address, *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    out, error = await process.communicate()
    assert process.returncode == 0, error.decode()
    return out.decode()


async def test_status_stream_follows_the_load(steady: WorkerProcess, stub: Any) -> None:
    """A status comes at once, and again as soon as a call comes in."""
    async with open_channel(steady.admin_address) as channel:
        statuses = worker_pb2_grpc.WorkerServiceStub(channel).WatchStatus(
            worker_pb2.WatchStatusRequest()
        )
        first = (await statuses.read()).status
        assert (first.state, first.running, first.slots) == (worker_pb2.NODE_STATE_READY, 0, 4)
        assert first.memory_bytes > 0
        calls = asyncio.gather(*(stub.Generate(long_call()) for _ in range(4)))
        seen = [(await statuses.read()).status for _ in range(3)]
        assert any(status.running + status.queued > 0 for status in seen)
        assert any(status.pending_forwards > 0 for status in seen)
        await calls
        assert (await statuses.read()).status.step_seconds > 0


async def test_health_answers_while_the_engine_computes(steady: WorkerProcess, stub: Any) -> None:
    """During computation health stays SERVING and is answered promptly."""
    async with open_channel(steady.address) as channel:
        health: Any = health_pb2_grpc.HealthStub(channel)
        work = asyncio.gather(*(stub.Generate(long_call()) for _ in range(12)))
        waits = []
        while not work.done():
            started = time.monotonic()
            answer = await health.Check(health_pb2.HealthCheckRequest())
            waits.append(time.monotonic() - started)
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
            await asyncio.sleep(0.02)
        await work
    assert statistics.median(waits) < 0.3


async def test_group_record_changes_limits_at_once(
    started: Started, steady: WorkerProcess, stub: Any
) -> None:
    """Limits of the group's record hold without a restart; a broken record changes nothing."""
    key = "/braid/groups/diffusion"

    async def refused() -> bool:
        try:
            await stub.Generate(long_call(9))
        except grpc.aio.AioRpcError as error:
            return reason_of(error) == "LIMIT_EXCEEDED"
        return False

    async def taken() -> bool:
        return not await refused()

    etcdctl(started.etcd, "put", key, '{"group":"diffusion","max_new_tokens":8}')
    await eventually(refused)
    for broken in ('{"max_new_tokens":4,}', "null", '{"max_new_tokens":0}', '{"maxx":1}'):
        etcdctl(started.etcd, "put", key, broken)
        await eventually(lambda: steady.metric("braid_group_config_valid") == 0)
        assert await refused()
        assert not await code_free(stub.Generate(long_call(8)))
    etcdctl(started.etcd, "put", key, '{"group":"diffusion","max_new_tokens":9}')
    await eventually(taken)
    assert steady.metric("braid_group_config_valid") == 1
    etcdctl(started.etcd, "del", key)
    assert not await code_free(stub.Generate(long_call(9)))
    assert len(steady.events("value_rejected")) == 4


async def test_group_record_names_the_strategy(
    started: Started, steady: WorkerProcess, stub: Any
) -> None:
    """A group's strategy and bar decode where a call names none, and show in the node's limits."""
    key = "/braid/groups/diffusion"
    record = '{"group":"diffusion","strategy":"entropy_bound","entropy_bound":64}'
    before = await decoded(stub)
    assert before.denoise_steps > before.blocks
    call = pb.GenerateRequest(prompt="abc", diffusion=pb.Diffusion(confidence_threshold=0.5))
    assert not await code_free(stub.Generate(call))
    async with open_channel(steady.admin_address) as channel:
        worker = worker_pb2_grpc.WorkerServiceStub(channel)

        async def limits() -> worker_pb2.RuntimeLimits:
            described: worker_pb2.DescribeResponse
            described = await worker.Describe(worker_pb2.DescribeRequest())
            return described.limits

        async def names(strategy: str) -> bool:
            return (await limits()).strategy == strategy

        etcdctl(started.etcd, "put", key, record)
        await eventually(lambda: names("entropy_bound"))
        assert (await limits()).entropy_bound == 64
        everything_at_once = await decoded(stub)
        assert everything_at_once.denoise_steps == everything_at_once.blocks
        assert not (await limits()).HasField("factor")
        refused = await code_of(stub.Generate(call))
        assert refused == (grpc.StatusCode.INVALID_ARGUMENT, "UNSUPPORTED_PARAMETER")
        call.diffusion.strategy = "margin"
        assert not await code_free(stub.Generate(call))
        etcdctl(started.etcd, "put", key, '{"group":"diffusion","strategy":"luck"}')
        await eventually(lambda: steady.metric("braid_group_config_valid") == 0)
        assert await names("entropy_bound")
        etcdctl(started.etcd, "del", key)
        await eventually(lambda: names(""))
    assert await decoded(stub) == before


async def code_free(call: Any) -> grpc.StatusCode | None:
    """The code of a call's failure; None where it is answered."""
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return error.code()
    return None


async def decoded(stub: Any, **diffusion: Any) -> pb.Usage:
    """Figures of an answer that is the same for the same way of decoding."""
    response = await stub.Generate(
        pb.GenerateRequest(
            prompt="hello",
            sampling=pb.Sampling(max_new_tokens=24, seed=1),
            diffusion=pb.Diffusion(**diffusion),
        )
    )
    usage: pb.Usage = response.usage
    return usage


EXTREMES: dict[str | None, tuple[float, float]] = {
    "confidence_threshold": (1.0, 1e-6),
    "factor": (1e-6, 64),
    "entropy_bound": (0, 64),
    None: (8, 1),
}
"""The strictest and the laxest bar by the parameter it is given by; steps where there is none."""


@pytest.mark.parametrize("strategy", PARAMETER_OF)
async def test_every_strategy_decodes_by_its_own_bar(stub: Any, strategy: str) -> None:
    """Named by a call, it takes a step a token under its strictest bar, fewer under its laxest."""
    parameter = PARAMETER_OF[strategy]
    strict, lax = [
        await decoded(stub, strategy=strategy, **{parameter or "max_steps": bar})
        for bar in EXTREMES[parameter]
    ]
    assert strict.denoise_steps > 0.8 * strict.completion_tokens
    assert lax.denoise_steps < strict.denoise_steps
    if strategy != "distance_threshold":
        assert lax.denoise_steps == lax.blocks


@pytest.mark.parametrize(
    ("layout", "capabilities"),
    [
        ("sdar_moe", sorted(CARD["capabilities"])),
        ("diffusion_gemma", ["seed"]),
    ],
)
async def test_a_mixture_tells_its_load(
    started: Started, tmp_path: Path, layout: str, capabilities: list[str]
) -> None:
    """A published mixture serves, says what it can, and exports what each expert computed."""
    own = layout == "diffusion_gemma"
    folder = write_gemma(tmp_path) if own else write_published(tmp_path, layout)
    node_id = layout.replace("_", "-")
    put_record(started.etcd, record_of(folder, node_id))
    worker = await started.registered(node_id=node_id, model=node_id)
    assert started.nodes()[node_id]["capabilities"] == capabilities
    series = 'braid_expert_tokens_total{{expert="{}",layer="1"}}'
    assert sum(worker.metric(series.format(expert)) for expert in range(EXPERTS)) > 0
    worker.kill()


async def test_second_node_of_the_same_id_ends(started: Started, steady: WorkerProcess) -> None:
    """A worker whose id is taken ends with an error; the first one stays as it was."""
    epoch = started.nodes()["steady"]["epoch"]
    second = started.start(node_id="steady")
    await eventually(lambda: second.exit_code is not None, START_S)
    assert second.exit_code == 1
    assert "/braid/nodes/diffusion/steady" in second.output.splitlines()[-1]
    assert started.nodes()["steady"]["epoch"] == epoch
    assert started.nodes()["steady"]["address"] == steady.address


async def test_port_in_use_ends_before_registering(started: Started, steady: WorkerProcess) -> None:
    """A worker on another's port ends with a line that names the address."""
    port = steady.address.rpartition(":")[2]
    second = started.start(node_id="late", port=port)
    await eventually(lambda: second.exit_code is not None, START_S)
    assert second.exit_code == 1
    assert f"cannot listen on {steady.address}" in second.output
    assert "late" not in started.nodes()


async def test_wrong_hash_never_serves(
    started: Started, ar_checkpoint: Path, tmp_path: Path
) -> None:
    """A version whose files differ from the record ends the start with its own exit code."""
    record = record_of(ar_checkpoint, "tiny-wrong")
    good = record.files[0].sha256
    record.files[0].sha256 = "0" * 64
    put_record(started.etcd, record)
    worker = started.start("ar", node_id="wrong", model="tiny-wrong")
    await eventually(lambda: worker.exit_code is not None, START_S)
    assert worker.exit_code == 3
    for line in worker.events("weights_mismatch"):
        assert line["alert"] is True
        assert (line["sha256"], line["recorded_sha256"]) == (good, "0" * 64)
    assert f"sha256 {good}, recorded {'0' * 64}" in worker.output.splitlines()[-1]
    assert "wrong" not in started.nodes()
    assert "READY" not in [event["state"] for event in worker.events("node_state")]


@pytest.mark.parametrize("kind", ["diffusion", "ar"])
async def test_stop_under_running_streams(started: Started, kind: str) -> None:
    """SIGTERM lets running streams finish, takes the record away first, and exits 0."""
    model = "tiny" if kind == "diffusion" else "tiny-ar"
    worker = await started.registered(kind, node_id=f"leaving-{kind}", model=model)
    async with open_channel(worker.address) as channel, open_channel(worker.admin_address) as admin:
        client = inference_pb2_grpc.InferenceServiceStub(channel)
        watch = worker_pb2_grpc.WorkerServiceStub(admin).WatchStatus(
            worker_pb2.WatchStatusRequest()
        )
        streams = [client.GenerateStream(long_call()) for _ in range(8)]
        await streams[0].read()
        worker.terminate()
        ends = await asyncio.gather(*(last_of(stream) for stream in streams))
        states = [message.status.state async for message in watch]
    assert all(end.HasField("finished") for end in ends)
    assert worker_pb2.NODE_STATE_DRAINING in states
    assert states[-1] == worker_pb2.NODE_STATE_STOPPED
    await eventually(lambda: worker.exit_code == 0, 15)
    assert f"leaving-{kind}" not in started.nodes()
    [drained] = worker.events("drained")
    assert drained["finished"] is True


async def last_of(stream: Any) -> Any:
    """The last message of a stream; fails where the stream does."""
    last = None
    while (message := await stream.read()) is not grpc.aio.EOF:
        last = message
    return last


async def test_work_that_outlives_the_grace_is_unavailable(started: Started) -> None:
    """Where the grace ends first a call ends UNAVAILABLE, never as a short answer; exit 0."""
    worker = await started.registered(node_id="hasty", grace_s=0, max_concurrency=64)
    async with open_channel(worker.address) as channel:
        client = inference_pb2_grpc.InferenceServiceStub(channel)
        calls = [asyncio.ensure_future(client.Generate(long_call())) for _ in range(40)]
        await eventually(lambda: worker.metric("braid_num_requests_running") > 0)
        worker.terminate()
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
    codes = {one.code() for one in outcomes if isinstance(one, grpc.aio.AioRpcError)}
    assert codes == {grpc.StatusCode.UNAVAILABLE}
    for answer in outcomes:
        if isinstance(answer, pb.GenerateResponse):
            assert answer.usage.completion_tokens <= 200
    await eventually(lambda: worker.exit_code == 0, 15)


async def test_drain_by_call_then_crash(started: Started) -> None:
    """Drain takes the node out and leaves it running; kill -9 later costs nobody anything."""
    worker = await started.registered(node_id="drained")
    async with open_channel(worker.admin_address) as admin, open_channel(worker.address) as channel:
        management = worker_pb2_grpc.WorkerServiceStub(admin)
        answer = await management.Drain(worker_pb2.DrainRequest(grace_seconds=5))
        assert (answer.status.state, answer.status.running) == (worker_pb2.NODE_STATE_DRAINING, 0)
        assert "drained" not in started.nodes()
        client = inference_pb2_grpc.InferenceServiceStub(channel)
        refused = await code_of(client.Generate(long_call()))
        assert refused == (grpc.StatusCode.UNAVAILABLE, "DRAINING")
        health: Any = health_pb2_grpc.HealthStub(channel)
        checked = await health.Check(health_pb2.HealthCheckRequest())
        assert checked.status == health_pb2.HealthCheckResponse.NOT_SERVING
    assert worker.readiness() == (
        503,
        {
            "model_loaded": True,
            "memory_ok": True,
            "accepting": False,
            "reason": "drained by an operator",
        },
    )
    worker.terminate()
    await eventually(lambda: worker.exit_code == 0, 15)


async def test_killed_node_expires(started: Started) -> None:
    """The record of a worker that was killed goes with its lease."""
    worker = await started.registered(node_id="victim")
    worker.kill()
    await eventually(lambda: "victim" not in started.nodes(), 5 * TTL_S)


async def test_waits_for_an_etcd_that_is_down(tmp_path: Path, ar_checkpoint: Path) -> None:
    """Without etcd a worker waits, says so on /ready, and starts once etcd is there."""
    etcd = new_etcd(tmp_path)
    etcd.start()
    put_record(etcd, record_of(ar_checkpoint))
    etcd.stop()
    workers = Started(etcd, tmp_path)
    try:
        worker = workers.start("ar", node_id="patient")
        await eventually(
            lambda: "waiting for etcd" in worker.readiness()[1].get("reason", ""), START_S
        )
        assert worker.readiness()[0] == 503
        etcd.start()
        await eventually(worker.is_ready, START_S)
        await eventually(lambda: "patient" in workers.nodes())
    finally:
        workers.close()
        etcd.kill()


async def test_help_lists_the_variables() -> None:
    """--help names every variable with its default, and no setting is needed for it."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", MODULES["ar"], "--help", cwd=ROOT, stdout=subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert process.returncode == 0
    for variable in ("BRAID_MODEL", "BRAID_GROUP", "BRAID_SLOTS", "BRAID_ETCD", "BRAID_GRACE_S"):
        assert variable in out.decode()
