"""One worker of two processes, each with half of the model, started by torchrun."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from braid.inference.v1 import inference_pb2 as pb
from braid.inference.v1 import inference_pb2_grpc
from services.chassis.channel import open_channel
from services.chassis.process import StartFailure
from services.generation.card import CheckpointError
from services.generation.checkpoint import read_checkpoint
from services.generation.model_size import size_of
from services.generation.stored_tensors import stored_tensors
from services.generation.tensor_parallel import check_divides, join
from tests.checkpoints import record_of
from tests.etcd import new_etcd
from tests.eventually import eventually
from tests.ports import free_port
from tests.worker_process import WorkerProcess, put_record

pytestmark = pytest.mark.timeout(300)

ACCELERATE = Path(sys.prefix) / "tensor-parallel"
START_S = 240.0
PROMPTS = ("abc", "another prompt, with a head that is long enough to be kept for others: " * 2)


@pytest.fixture
async def pair(
    tmp_path: Path, ar_checkpoint: Path
) -> AsyncIterator[tuple[WorkerProcess, WorkerProcess]]:
    """A worker of two processes, and one of one process, with the same model."""
    if not ACCELERATE.is_dir():
        pytest.skip(f"make installs accelerate into {ACCELERATE}")
    etcd = new_etcd(tmp_path)
    etcd.start()
    put_record(etcd, record_of(ar_checkpoint))
    torchrun = ("-m", "torch.distributed.run", "--nproc-per-node=2", "--master-addr=127.0.0.1")
    shared = WorkerProcess(
        "ar",
        etcd.endpoint,
        tmp_path,
        launcher=(*torchrun, f"--master-port={free_port()}"),
        extra=ACCELERATE,
        tensor_parallel=2,
    )
    single = WorkerProcess("ar", etcd.endpoint, tmp_path)
    await eventually(shared.is_ready, START_S)
    await eventually(single.is_ready, START_S)
    yield shared, single
    for worker in (shared, single):
        worker.terminate()
    await eventually(lambda: None not in (shared.exit_code, single.exit_code), 60)
    etcd.kill()


async def answers(worker: WorkerProcess) -> list[str]:
    """Greedy answers to PROMPTS, twice each, so that heads are taken over."""
    async with open_channel(worker.address) as channel:
        stub: Any = inference_pb2_grpc.InferenceServiceStub(channel)
        sampling = pb.Sampling(max_new_tokens=24, temperature=0)
        found = [
            await stub.Generate(pb.GenerateRequest(prompt=prompt, sampling=sampling))
            for prompt in (*PROMPTS, *PROMPTS)
        ]
    return [answer.text for answer in found]


async def test_two_processes_answer_as_one(pair: tuple[WorkerProcess, WorkerProcess]) -> None:
    """Each has half of the weights, and together they find the tokens that one process finds."""
    shared, single = pair
    together = await answers(shared)
    assert together == await answers(single)
    assert any(together)
    assert len(shared.events("memory_plan")) == 2
    halves = [plan["cache_bytes"] for plan in shared.events("memory_plan")]
    assert halves == [single.events("memory_plan")[0]["cache_bytes"] // 2] * 2
    shared.terminate()
    await eventually(lambda: shared.exit_code is not None, 60)
    assert shared.events("worker_stopped")
    assert not shared.events("process_failed")


def test_plan_of_a_part_is_smaller(ar_checkpoint: Path) -> None:
    """A process plans for its part of the linear layers and of the keys and values."""
    checkpoint, tensors = read_checkpoint(ar_checkpoint), stored_tensors(ar_checkpoint)
    whole, half = (size_of(checkpoint, tensors, "auto", ways) for ways in (1, 2))
    assert whole.weights_bytes // 2 < half.weights_bytes < whole.weights_bytes
    assert whole.cache is not None
    assert half.cache is not None
    assert 2 * half.cache.bytes_per_slot(64) == whole.cache.bytes_per_slot(64)


@pytest.mark.parametrize(("dtype", "ways"), [("auto", 3), ("auto", 4), ("int8", 2)])
def test_model_that_does_not_divide_is_refused(dtype: str, ways: int, ar_checkpoint: Path) -> None:
    """Heads that do not divide, and what was not made for it, end the start by name."""
    check_divides(read_checkpoint(ar_checkpoint), "auto", 2)
    with pytest.raises(CheckpointError, match="tensor_parallel"):
        check_divides(read_checkpoint(ar_checkpoint), dtype, ways)


def test_without_accelerate_it_is_named() -> None:
    """A worker told to share its model says which extra it lacks."""
    with pytest.raises(StartFailure, match="the tensor-parallel extra"):
        join(2, "cpu")
