"""Rollouts in a real etcd, by figures that the tests make up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

from braid.config.v1 import config_pb2
from services.chassis import keys
from services.chassis.registry import Registry
from services.chassis.transaction import Unchanged
from services.config_center.change import Author
from services.config_center.documents import ROLLOUT, SHARES
from services.config_center.history import History
from services.config_center.rollout import steps
from services.config_center.rollout.controller import RolloutController
from services.config_center.rollout.leadership import Leadership
from services.config_center.rollout.rollouts import Rollouts
from services.config_center.rollout.steps import Figures
from services.config_center.store import Store, Stored
from tests.config_center.rollouts import FAILING, GOOD, plan
from tests.config_center.test_servicer import refused, register
from tests.eventually import eventually

KEY, TRAFFIC = keys.rollout_key("demo"), keys.traffic_key("demo")


class Source:
    """Says what it was told to."""

    def __init__(self, figures: Figures) -> None:
        self.told = figures

    async def figures(self, rollout: config_pb2.Rollout, now_s: float) -> Figures:
        """The same for every step."""
        return self.told


@asynccontextmanager
async def controlling(registry: Registry, source: Source) -> AsyncIterator[asyncio.Task[None]]:
    """A config center's controller at work."""
    controller = RolloutController(
        Rollouts(Store(registry)), source, Leadership(registry, ttl_s=1), every_s=0.02
    )
    async with asyncio.TaskGroup() as tasks:
        work = tasks.create_task(controller.run())
        yield work
        work.cancel()


async def start(registry: Registry, *percents: int) -> Stored[config_pb2.Rollout]:
    await registry.put(TRAFFIC, b'{"v1": 100}')
    request = config_pb2.StartRolloutRequest(
        model="demo", candidate="v2", plan=plan(*(percents or (5, 50, 100)))
    )
    return await Rollouts(Store(registry)).start(request, Author("ann"))


async def state_of(registry: Registry) -> Stored[config_pb2.Rollout]:
    stored = await Store(registry).read(KEY, ROLLOUT)
    assert stored
    return stored


async def ended(registry: Registry, state: int) -> Stored[config_pb2.Rollout]:
    stored = await state_of(registry)
    assert stored.value.state == state
    return stored


async def shares(registry: Registry) -> Stored[dict[str, int]]:
    stored = await Store(registry).read(TRAFFIC, SHARES)
    assert stored
    return stored


async def shares_over_time(registry: Registry) -> list[int]:
    """The candidate's share after each transition."""
    found = (await History(registry).list(0, 1000, TRAFFIC)).changes
    parts = [part for change in found for part in change.keys if part.key == TRAFFIC]
    return [json.loads(part.after)["v2"] for part in parts]


async def test_good_version_takes_every_step_once(registry: Registry) -> None:
    """Three config centers bring a good version to 100 %, each step in one revision, once."""
    await start(registry)
    source = Source(GOOD)
    async with (
        controlling(registry, source),
        controlling(registry, source),
        controlling(registry, source),
    ):
        done = await eventually(lambda: ended(registry, steps.DONE))
    assert await shares_over_time(registry) == [0, 50, 500, 1000, 1000]
    assert (await shares(registry)).revision == done.revision


async def test_bad_version_is_taken_back(registry: Registry) -> None:
    """An abort puts the old shares back in the revision that says so, with the reason."""
    await start(registry)
    source = Source(GOOD)
    async with controlling(registry, source):
        await eventually(lambda: _at_share(registry, 50))
        source.told = FAILING
        aborted = await eventually(lambda: ended(registry, steps.ABORTED))
    now = await shares(registry)
    assert (now.value, now.revision) == ({"v1": 100, "v2": 0}, aborted.revision)
    assert "error rate" in aborted.value.reason


async def _at_share(registry: Registry, share: int) -> bool:
    return (await shares(registry)).value.get("v2", 0) >= share


async def test_another_goes_on_where_a_leader_was_killed(registry: Registry) -> None:
    """With the leader gone without a word the next one ends the rollout, doubling nothing."""
    await start(registry)
    lease = await registry.grant(1)
    await registry.put(keys.ROLLOUT_LEADER, b"killed", lease=lease)
    async with controlling(registry, Source(GOOD)):
        await eventually(lambda: ended(registry, steps.DONE))
    assert await shares_over_time(registry) == [0, 50, 500, 1000, 1000]


async def test_former_leader_can_move_nothing(registry: Registry) -> None:
    """Who lost the leadership without noticing fails at its next transition."""
    found = await start(registry)
    controller = RolloutController(Rollouts(Store(registry)), Source(GOOD), Leadership(registry))
    revision = await registry.put(keys.ROLLOUT_LEADER, b"me")
    await registry.put(keys.ROLLOUT_LEADER, b"another")
    with pytest.raises(Exception, match="read it again"):
        await controller.advance(found, Unchanged(keys.ROLLOUT_LEADER, revision))
    assert (await state_of(registry)).revision == found.revision


async def test_shares_edited_by_hand_pause_it(registry: Registry) -> None:
    """An operator's own shares stay in force, and the rollout waits to be resumed."""
    await start(registry)
    await registry.put(TRAFFIC, b'{"v1": 70, "v2": 30}')
    async with controlling(registry, Source(GOOD)):
        await eventually(lambda: ended(registry, steps.PAUSED))
    assert (await shares(registry)).value == {"v1": 70, "v2": 30}


async def test_operators_move_it(config_center: Any, version_folder: Any) -> None:
    """Promote, pause, resume and abort do what they say; what is over cannot be moved."""
    for version in ("v1", "v2"):
        await register(config_center, version_folder, version)
    await config_center.StartRollout(
        config_pb2.StartRolloutRequest(
            model="demo", candidate="v2", stable="v1", plan=plan(5, 100, hold_s=3600)
        )
    )
    promoted = await config_center.PromoteRollout(config_pb2.PromoteRolloutRequest(model="demo"))
    assert (promoted.rollout.state, promoted.rollout.step) == (steps.RUNNING, 1)
    paused = await config_center.PauseRollout(
        config_pb2.PauseRolloutRequest(model="demo", expected_revision=promoted.revision)
    )
    assert paused.rollout.state == steps.PAUSED
    async with refused(grpc.StatusCode.ABORTED, "REVISION_CONFLICT"):
        await config_center.AbortRollout(
            config_pb2.AbortRolloutRequest(model="demo", expected_revision=promoted.revision)
        )
    resumed = await config_center.ResumeRollout(config_pb2.ResumeRolloutRequest(model="demo"))
    assert (resumed.rollout.state, resumed.rollout.step) == (steps.RUNNING, 1)
    await config_center.AbortRollout(config_pb2.AbortRolloutRequest(model="demo"))
    got = await config_center.GetTraffic(config_pb2.GetTrafficRequest(model="demo"))
    assert dict(got.shares) == {"v1": 1000, "v2": 0}
    async with refused(grpc.StatusCode.FAILED_PRECONDITION, "WRONG_STATE"):
        await config_center.PromoteRollout(config_pb2.PromoteRolloutRequest(model="demo"))


async def test_one_rollout_at_a_time(registry: Registry) -> None:
    """A model's second rollout has to wait until the first is over."""
    found = await start(registry)
    request = config_pb2.StartRolloutRequest(model="demo", candidate="v3", plan=plan(100))
    rollouts = Rollouts(Store(registry))
    with pytest.raises(Exception, match="under way"):
        await rollouts.start(request, Author())
    await rollouts.abort(found, Author())
    assert (await rollouts.start(request, Author())).value.candidate == "v3"


@pytest.mark.parametrize("percents", [(5, 50), (50, 5, 100), (0, 100), (100, 100)])
async def test_plan_has_to_end_with_all_of_it(registry: Registry, percents: tuple[int]) -> None:
    """Steps grow up to 100 percent, or nothing is written."""
    with pytest.raises(Exception, match=r"plan\.steps"):
        await start(registry, *percents)
    assert await registry.get(KEY) is None
