"""Batches to a worker over a real socket: outcomes by id, bounded, and out of others' way."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from google.rpc import error_details_pb2
from google.rpc.status_pb2 import Status
from torch import Tensor

from braid.inference.v1 import inference_pb2 as pb
from services.chassis.errors import Draining
from services.generation.checkpoint import read_checkpoint
from services.generation.sequence import Rows
from tests.generation.requests import LIMITS
from tests.generation.serving import ScriptedModel, serving

ANSWERS = {"hello": "world"}


def items(requests: Iterable[pb.GenerateRequest]) -> list[pb.GenerateBatchRequest]:
    """Requests as items that are named by their number."""
    return [
        pb.GenerateBatchRequest(item_id=str(number), request=request)
        for number, request in enumerate(requests)
    ]


def said(prompt: str = "hello", **fields: Any) -> pb.GenerateRequest:
    return pb.GenerateRequest(prompt=prompt, sampling=pb.Sampling(**fields))


async def test_each_item_has_its_outcome(ar_checkpoint: Path) -> None:
    """Hundreds of items are answered by id; bad ones get a status of their own."""
    requests = [said() for _ in range(200)]
    requests[7] = said(top_p=7)
    requests[11] = said(max_new_tokens=1_000_000)
    async with serving(ar_checkpoint, ANSWERS) as worker:
        outcomes = {
            outcome.item_id: outcome async for outcome in worker.stub.GenerateBatch(items(requests))
        }
        assert worker.engine.snapshot().running == 0
    assert len(outcomes) == 200
    failed = {item_id for item_id, outcome in outcomes.items() if outcome.HasField("error")}
    assert failed == {"7", "11"}
    answer = outcomes["0"].response
    assert (answer.text, answer.request_id) == ("world", "0")
    status = Status.FromString(outcomes["7"].error.SerializeToString())
    bad = error_details_pb2.BadRequest()
    assert status.code == grpc.StatusCode.INVALID_ARGUMENT.value[0]
    assert any(detail.Unpack(bad) for detail in status.details)
    assert bad.field_violations[0].field == "sampling.top_p"


@pytest.mark.parametrize(
    ("item", "field"),
    [
        (pb.GenerateBatchRequest(request=said()), "item_id"),
        (
            pb.GenerateBatchRequest(
                item_id="a", request=pb.GenerateRequest(prompt="x", priority=pb.PRIORITY_NORMAL)
            ),
            "request.priority",
        ),
    ],
)
async def test_bad_items_name_their_field(
    ar_checkpoint: Path, item: pb.GenerateBatchRequest, field: str
) -> None:
    """An item without a name or with a priority is refused; the stream goes on."""
    async with serving(ar_checkpoint, ANSWERS) as worker:
        good = pb.GenerateBatchRequest(item_id="good", request=said())
        outcomes = [one async for one in worker.stub.GenerateBatch([item, good])]
    [refused] = [one for one in outcomes if one.HasField("error")]
    assert field in refused.error.message
    assert [one.response.text for one in outcomes if one.item_id == "good"] == ["world"]


async def test_full_queues_are_waited_for(ar_checkpoint: Path) -> None:
    """More items than there is room for are no error offline."""
    tight = replace(LIMITS, queue_length=0, max_concurrency=2)
    async with serving(ar_checkpoint, ANSWERS, limits=tight) as worker:
        sent = items(said() for _ in range(12))
        outcomes = [one async for one in worker.stub.GenerateBatch(sent)]
    assert [one.response.text for one in outcomes] == ["world"] * 12


class HeldModel(ScriptedModel):
    """Computes nothing until it is let go."""

    def __init__(self, folder: Path) -> None:
        super().__init__(read_checkpoint(folder).codec, ANSWERS)
        self.go = threading.Event()

    def forward(self, batch: Sequence[tuple[int, Rows]]) -> Tensor:
        """The scripted one, later."""
        self.go.wait(30)
        return super().forward(batch)


async def test_items_wait_at_the_client(ar_checkpoint: Path) -> None:
    """While the window is full no item is read: what the client may send ahead is bounded."""
    sent, model = 0, HeldModel(ar_checkpoint)

    async def endless() -> AsyncIterator[pb.GenerateBatchRequest]:
        nonlocal sent
        while True:
            sent += 1
            prompt = "hello" if sent <= 2 * LIMITS.max_batch_size else "x" * 100_000
            yield pb.GenerateBatchRequest(item_id=str(sent), request=said(prompt))

    async with serving(ar_checkpoint, model=model) as worker:
        call, before = worker.stub.GenerateBatch(endless()), -1
        while before != sent:
            before = sent
            await asyncio.sleep(0.2)
        assert worker.reception.calls.count == 2 * LIMITS.max_batch_size
        model.go.set()
        assert (await call.read()).response.text == "world"
        call.cancel()
    assert before < 200


async def test_a_draining_worker_ends_the_stream(ar_checkpoint: Path) -> None:
    """Items at work get their outcome, then the stream says UNAVAILABLE: go on elsewhere."""
    go = asyncio.Event()

    async def two() -> AsyncIterator[pb.GenerateBatchRequest]:
        yield pb.GenerateBatchRequest(item_id="first", request=said())
        await go.wait()
        yield pb.GenerateBatchRequest(item_id="second", request=said())

    async with serving(ar_checkpoint, ANSWERS) as worker:
        call = worker.stub.GenerateBatch(two())
        assert (await call.read()).item_id == "first"
        worker.reception.refuse(Draining("the node is draining"))
        go.set()
        with pytest.raises(grpc.aio.AioRpcError) as ended:
            await call.read()
    assert ended.value.code() is grpc.StatusCode.UNAVAILABLE
