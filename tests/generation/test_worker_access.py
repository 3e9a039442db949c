"""A worker process whose management is for operators alone."""

from __future__ import annotations

from pathlib import Path

import grpc
import grpc.aio
import pytest

from braid.worker.v1 import worker_pb2, worker_pb2_grpc
from services.chassis.channel import open_channel
from services.chassis.security.keyed_channel import keyed
from tests.ports import free_port
from tests.worker_process import WorkerProcess

OPERATOR_KEY = "0" * 40


async def test_drain_wants_an_operator_and_a_look_does_not(tmp_path: Path) -> None:
    """Without etcd too: Describe is open, Drain takes the operator key of the settings alone."""
    worker = WorkerProcess(
        "ar",
        f"127.0.0.1:{free_port()}",
        tmp_path,
        group="ar",
        access="callers",
        operator_key=OPERATOR_KEY,
    )
    try:
        async with open_channel(worker.admin_address) as channel:
            stub = worker_pb2_grpc.WorkerServiceStub(channel)
            await stub.Describe(worker_pb2.DescribeRequest(), timeout=60, wait_for_ready=True)
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stub.Drain(worker_pb2.DrainRequest(), timeout=10)
            assert caught.value.code() == grpc.StatusCode.UNAUTHENTICATED
            operator = worker_pb2_grpc.WorkerServiceStub(keyed(channel, OPERATOR_KEY))
            await operator.Drain(worker_pb2.DrainRequest(), timeout=10)
        assert OPERATOR_KEY not in worker.output
    finally:
        worker.kill()
