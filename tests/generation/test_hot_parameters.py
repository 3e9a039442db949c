"""Each field of a group's record, put into a real etcd while a real engine answers."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from braid.config.v1.config_pb2 import Group
from braid.inference.v1 import inference_pb2 as pb
from services.chassis.log import set_level
from services.chassis.registry import Registry
from services.chassis.status import reason_of
from services.generation.group import FollowedGroup
from services.generation.limits import Limits
from tests.eventually import eventually
from tests.generation.requests import LIMITS
from tests.generation.serving import Serving, serving
from tests.generation.slow_model import SlowModel

KEY = "/braid/groups/g"
EACH_A_STEP = pb.Diffusion(strategy="static_quota", max_steps=8)


class Hot:
    """A worker whose limits follow the record."""

    def __init__(self, worker: Serving, registry: Registry) -> None:
        self.worker = worker
        self.seen: list[Group] = []
        self._registry = registry

    def apply(self, group: Group) -> None:
        """What a residence does with a record."""
        limits = LIMITS.under(group)
        self.worker.reception.set_limits(limits)
        self.worker.engine.set_limits(limits.for_engine())
        self.seen.append(group)

    @property
    def limits(self) -> Limits:
        """Those that hold for a call that comes now."""
        assert self.worker.reception.model
        return self.worker.reception.model.limits

    async def put(self, **fields: object) -> None:
        """Stores a record and waits until it was seen."""
        before = len(self.seen)
        await self._registry.put(KEY, json.dumps({"group": "g", **fields}).encode())
        await eventually(lambda: len(self.seen) > before)

    async def refusal(self, **fields: Any) -> str:
        """Why a call is refused; "" where it is answered."""
        try:
            await self.worker.stub.Generate(pb.GenerateRequest(prompt="abc", **fields))
        except grpc.aio.AioRpcError as error:
            return reason_of(error)
        return ""


@asynccontextmanager
async def following(
    folder: Path, registry: Registry, model: SlowModel | None = None
) -> AsyncIterator[Hot]:
    async with serving(folder, model=model) as worker, asyncio.TaskGroup() as tasks:
        hot = Hot(worker, registry)
        work = tasks.create_task(FollowedGroup(registry, "g", hot.apply).run())
        try:
            yield hot
        finally:
            work.cancel()


@pytest.fixture
async def hot(diffusion_checkpoint: Path, registry: Registry) -> AsyncIterator[Hot]:
    """A diffusion worker of group g."""
    async with following(diffusion_checkpoint, registry) as worker:
        yield worker


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_steps", 3),
        ("max_batch_size", 2),
        ("max_concurrency", 3),
        ("queue_length", 1),
        ("max_new_tokens", 7),
        ("max_context", 100),
        ("confidence_threshold", 0.25),
        ("strategy", "margin"),
        ("factor", 0.5),
        ("entropy_bound", 0.5),
    ],
)
async def test_each_field_applies_and_goes_again(
    hot: Hot, registry: Registry, field: str, value: object
) -> None:
    """A field holds as soon as it is stored, alone, and no longer than it is stored."""
    await hot.put(**{field: value})
    assert hot.limits == LIMITS.under(Group(**{field: value}))  # type: ignore[arg-type]
    assert getattr(hot.limits, field) == value
    await registry.delete(KEY)
    await eventually(lambda: hot.limits == LIMITS)


def sampling(tokens: int) -> pb.Sampling:
    return pb.Sampling(max_new_tokens=tokens, temperature=1.0, seed=1)


async def test_running_answers_keep_the_rules_they_began_with(
    diffusion_checkpoint: Path, registry: Registry
) -> None:
    """An answer under way is not cut by lower limits; the next call is refused."""
    slow = SlowModel(diffusion_checkpoint, 0.03)
    async with following(diffusion_checkpoint, registry, slow) as hot:
        call = hot.worker.stub.Generate(
            pb.GenerateRequest(prompt="abc", sampling=sampling(60), diffusion=EACH_A_STEP)
        )
        await eventually(lambda: hot.worker.engine.snapshot().running == 1)
        await hot.put(max_new_tokens=4, max_steps=1, max_batch_size=1, queue_length=0)
        assert hot.worker.engine.snapshot().running == 1
        assert await hot.refusal(sampling=sampling(60)) == "LIMIT_EXCEEDED"
        usage = (await call).usage
    assert usage.completion_tokens > 4
    assert usage.denoise_steps > usage.blocks


async def test_steps_and_threshold_change_what_a_call_costs(hot: Hot) -> None:
    """max_steps and the default threshold reach the next call's denoising."""

    async def steps() -> float:
        request = pb.GenerateRequest(prompt="abc", sampling=pb.Sampling(max_new_tokens=32))
        usage = (await hot.worker.stub.Generate(request)).usage
        return float(usage.denoise_steps / max(1, usage.blocks))

    usual = await steps()
    await hot.put(max_steps=1)
    assert await steps() == 1 < usual
    await hot.put(confidence_threshold=0.001)
    assert await steps() < usual


async def test_concurrency_refuses_the_next_call(hot: Hot) -> None:
    """A lower bound counts from the next call on; who is inside stays."""
    with hot.worker.reception.admitted():
        await hot.put(max_concurrency=1)
        assert await hot.refusal() == "QUEUE_FULL"
    assert await hot.refusal() == ""


async def test_a_broken_record_changes_nothing(hot: Hot, registry: Registry) -> None:
    """The last good record stays in force until there is a better one."""
    await hot.put(max_new_tokens=7)
    for broken in (b"{", b'{"group":"g","log_level":"loud"}', b'{"group":"g","version":"latest"}'):
        await registry.put(KEY, broken)
    await hot.put(max_new_tokens=9)
    assert [group.max_new_tokens for group in hot.seen] == [7, 9]


@pytest.fixture
def root_level() -> Iterator[None]:
    """Puts the level back."""
    root = logging.getLogger()
    level = root.level
    yield
    root.setLevel(level)


@pytest.mark.usefixtures("root_level")
@pytest.mark.parametrize("level", ["debug", "error"])
async def test_the_log_level_is_the_records(hot: Hot, level: str) -> None:
    """The record's level is what loggers go by."""
    await hot.put(log_level=level)
    set_level(hot.seen[-1].log_level)
    assert logging.getLogger("services").getEffectiveLevel() == getattr(logging, level.upper())
