"""Who is sent on at once, who waits for a node, and who is told at the door that it will not do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from random import Random

from services.chassis.errors import DeadlineExceeded, QueueFull, ServiceError, WaitTooLong
from services.router.features import Features
from services.router.group_load import expected_wait_s
from services.router.metrics import RouterMetrics
from services.router.node import TableNode
from services.router.passage import TableSource
from services.router.policy import Decision, Reason, choose, pool_of, with_room
from services.router.waiting_line import LineFull, Turn, WaitingLine

LOOKED_AT = 16
"""Turns that are tried when a place comes free; those before may need another node."""

LEAST_WAIT_S = 0.05
"""A refused call is told to wait at least so long."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """One call in line: what it is, where it was to go, and who waits for the word."""

    features: Features
    decision: Decision
    avoid: frozenset[str]
    given: asyncio.Future[Decision]


Line = WaitingLine[Waiting]


class Admission:
    """One line for each group whose nodes are full. Used from one event loop."""

    def __init__(
        self, tables: TableSource, metrics: RouterMetrics, rng: Random, length: int
    ) -> None:
        self._tables = tables
        self._metrics = metrics
        self._rng = rng
        self._length = length
        self._numbers = count()
        self._lines: dict[str, Line] = {}

    @property
    def lines(self) -> Mapping[str, Line]:
        """Lines in which somebody waits, by group."""
        return self._lines

    def wait_s(self, group: str, priority: int, ends_at: float) -> float:
        """How long a call of this class would wait in line."""
        line = self._lines.get(group)
        ahead = line.ahead_of(priority, ends_at) if line else 0.0
        return expected_wait_s((node.load for node in self._nodes(group)), ahead)

    async def place(
        self, decision: Decision, features: Features, ends_at: float, avoid: frozenset[str]
    ) -> Decision:
        """Where a call goes whose node has no room: elsewhere in its version, or here later.

        ``ends_at`` is when the call is of no use any more. Under overload the
        rule may have it done in fewer steps, or by another group. Raises QueueFull
        and WaitTooLong at once, DeadlineExceeded where the wait took too long, and what
        choosing raises once there is no node to wait for.
        """
        free = self._with_room(decision, features, avoid)
        if free is not None:
            return replace(decision, node=free)
        overload = decision.rule.route.overload
        if overload is not None and overload.overrides is not None:
            decision = replace(decision, degraded=True)
        try:
            turn = self._join(decision, features, ends_at, avoid)
        except ServiceError as error:
            return self._elsewhere(decision, features, avoid, error)
        outcome = "degraded" if decision.degraded else "waited"
        self._metrics.admission(decision.node.record.group, outcome)
        return await self._wait(turn)

    def freed(self, group: str) -> None:
        """A place may have come free in the group."""
        if group in self._lines:
            self._serve(group)

    def review(self) -> None:
        """Nodes may have come, gone, or become free."""
        for group in tuple(self._lines):
            if not self._all_full(group):
                self._serve(group)

    def _join(
        self, decision: Decision, features: Features, ends_at: float, avoid: frozenset[str]
    ) -> Turn[Waiting]:
        """Puts the call in line; raises QueueFull or WaitTooLong."""
        node, route = decision.node, decision.rule.route
        group, priority = node.record.group, features.priority
        wait_s = self.wait_s(group, priority, ends_at)
        if time.monotonic() + wait_s > ends_at:
            raise WaitTooLong(
                f"its turn would come in {wait_s:.1f} s, after its deadline",
                retry_after_s=max(wait_s, LEAST_WAIT_S),
            )
        line = self._lines.get(group) or WaitingLine(self._length)
        given = asyncio.get_running_loop().create_future()
        turn = Turn(
            priority=priority,
            ends_at=ends_at,
            number=next(self._numbers),
            rule=decision.rule.name,
            forwards=features.forwards(diffusion=node.diffusion),
            item=Waiting(features, decision, avoid, given),
        )
        try:
            last = line.put(turn, route.queue_share)
        except LineFull:
            raise _full(wait_s) from None
        if last is not None:
            self._metrics.admission(group, "displaced")
            _end(last, _full(wait_s))
        self._lines[group] = line
        return turn

    def _elsewhere(
        self, decision: Decision, features: Features, avoid: frozenset[str], error: ServiceError
    ) -> Decision:
        """The rule's way out of an overload, or ``error``."""
        group, overload = decision.node.record.group, decision.rule.route.overload
        for other in overload.groups if overload else ():
            node = with_room(other, features, self._tables.table, self._rng, avoid)
            if node is not None:
                self._metrics.admission(group, "moved")
                return replace(decision, node=node, reason=Reason.OVERLOAD, degraded=False)
        self._metrics.admission(group, "late" if isinstance(error, WaitTooLong) else "full")
        raise error

    async def _wait(self, turn: Turn[Waiting]) -> Decision:
        given = turn.item.given
        try:
            async with asyncio.timeout(turn.ends_at - time.monotonic()):
                decision = await given
        except TimeoutError:
            self._give_up(turn)
            raise DeadlineExceeded("the call's deadline passed while it waited") from None
        except asyncio.CancelledError:
            self._give_up(turn)
            raise
        decision.node.load.reserved -= 1
        return decision

    def _give_up(self, turn: Turn[Waiting]) -> None:
        """The caller waits no longer; a place that it was just given goes to the next one."""
        self._leave(turn)
        given = turn.item.given
        if given.done() and not given.cancelled() and given.exception() is None:
            record = given.result().node.record
            given.result().node.load.reserved -= 1
            self.freed(record.group)

    def _leave(self, turn: Turn[Waiting]) -> None:
        group = turn.item.decision.node.record.group
        line = self._lines.get(group)
        if line is not None:
            line.remove(turn)
            if not line:
                del self._lines[group]

    def _serve(self, group: str) -> None:
        """Gives what places there are to those in line, in order, who can use them."""
        looked_at = 0
        for turn in self._lines[group]:
            try:
                decision = self._given(turn.item)
            except ServiceError as error:
                _end(turn, error)
                self._leave(turn)
                continue
            if decision is not None:
                decision.node.load.reserved += 1
                turn.item.given.set_result(decision)
                self._leave(turn)
                continue
            looked_at += 1
            if looked_at == LOOKED_AT:
                return

    def _given(self, waiting: Waiting) -> Decision | None:
        """The call's node if there is one with room; raises where nobody could ever take it."""
        decision = waiting.decision
        table = self._tables.table
        if not pool_of(decision.node, waiting.features, table, waiting.avoid).nodes:
            chosen = choose(waiting.features, table, self._rng, waiting.avoid)
            decision = replace(chosen, degraded=decision.degraded)
            return None if decision.node.load.saturated else decision
        free = self._with_room(decision, waiting.features, waiting.avoid)
        return None if free is None else replace(decision, node=free)

    def _all_full(self, group: str) -> bool:
        """Whether there are nodes and none has room; asked often under load, so it costs little."""
        loads = [node.load for node in self._nodes(group)]
        return bool(loads) and all(load.saturated for load in loads)

    def _with_room(
        self, decision: Decision, features: Features, avoid: frozenset[str]
    ) -> TableNode | None:
        pool = pool_of(decision.node, features, self._tables.table, avoid).with_room()
        return pool.draw(self._rng) if pool.nodes else None

    def _nodes(self, group: str) -> Iterator[TableNode]:
        for versions in self._tables.table.groups.get(group, {}).values():
            for variant in versions.values():
                yield from variant.pool.nodes


def _full(wait_s: float) -> QueueFull:
    wait_s = max(wait_s, LEAST_WAIT_S)
    return QueueFull("every node of the group is full, and so is its queue", retry_after_s=wait_s)


def _end(turn: Turn[Waiting], error: ServiceError) -> None:
    if not turn.item.given.done():
        turn.item.given.set_exception(error)
