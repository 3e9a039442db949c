"""Moves rollouts on by what their versions' calls came to."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

import structlog

from braid.config.v1 import config_pb2
from services.chassis import keys
from services.chassis.errors import RevisionConflict, ServiceError
from services.chassis.transaction import Unchanged
from services.config_center.change import Author
from services.config_center.rollout import steps
from services.config_center.rollout.leadership import Leadership
from services.config_center.rollout.rollouts import Clock, Found, Rollouts
from services.config_center.rollout.steps import ABORTED, MOVING, PAUSED, Action, Figures, next_step

WHO = "rollout"
EVERY_S = 1.0

log = structlog.get_logger()


class FigureSource(Protocol):
    """Where figures come from."""

    async def figures(self, rollout: config_pb2.Rollout, now_s: float) -> Figures:
        """What was seen since the rollout's step began; smoke tests are run where it is due."""


class RolloutController:
    """The leader's work. Whoever is killed at whatever point leaves a whole rollout behind."""

    def __init__(
        self,
        rollouts: Rollouts,
        source: FigureSource,
        leadership: Leadership,
        *,
        every_s: float = EVERY_S,
        clock: Clock = time.time,
    ) -> None:
        self._rollouts = rollouts
        self._source = source
        self._leadership = leadership
        self._every_s = every_s
        self._clock = clock

    async def run(self) -> None:
        """Looks after all rollouts for ever, while it leads."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._leadership.run())
            while True:
                await asyncio.sleep(self._every_s)
                if held := self._leadership.held:
                    await self._look(held)

    async def _look(self, held: Unchanged) -> None:
        try:
            found, _ = await self._rollouts.list()
        except ServiceError as error:
            log.warning("rollouts_not_read", reason=error.message)
            return
        moving = [it for it in found if it.value.state in MOVING]
        await asyncio.gather(*(self._tend(it, held) for it in moving))

    async def _tend(self, found: Found, held: Unchanged) -> None:
        try:
            await self.advance(found, held)
        except RevisionConflict:
            log.info("rollout_moved_by_others", model=found.value.model)
        except ServiceError as error:
            log.warning("rollout_not_moved", model=found.value.model, reason=error.message)

    async def advance(self, found: Found, held: Unchanged) -> None:
        """Makes the transition that is due, if one is and this process still leads."""
        rollout = found.value
        if not await self._rollouts.shares_kept(found):
            moved = steps.in_state(rollout, PAUSED, "shares were changed by others", self._clock())
            await self._rollouts.stop(found, moved, Author(WHO, moved.reason), (held,))
            return
        now_s = self._clock()
        figures = await self._source.figures(rollout, now_s)
        step = next_step(rollout, figures, now_s)
        if step.action is Action.WAIT:
            return
        if step.action is Action.ADVANCE:
            moved = steps.advanced(rollout, step.reason, now_s, figures.stable)
        else:
            moved = steps.in_state(rollout, ABORTED, step.reason, now_s)
        kept = Unchanged(keys.traffic_key(rollout.model), found.revision)
        await self._rollouts.move(found, moved, Author(WHO, step.reason), (held, kept))
