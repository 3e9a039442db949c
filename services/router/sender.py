"""Sending a call to the node that was chosen, and to a second one where the rule hedges."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Any

import grpc.aio

from services.chassis.channel import LEAST_TIME_S
from services.chassis.errors import DeadlineExceeded
from services.router.admission import Admission
from services.router.attempt import Attempt, Metadata, Sending
from services.router.ejection import Ejections
from services.router.features import Features
from services.router.hedging import Race
from services.router.links import Links
from services.router.metrics import RouterMetrics
from services.router.mirroring import Mirroring
from services.router.passage import Passage, TableSource
from services.router.policy import Decision, overrides_of, pool_of
from services.router.retry_budget import RetryBudget
from services.router.worker_failures import blames_node

SEED = "seed"
"""The need of a request that names a seed: two nodes of a version answer it alike."""


@dataclass(frozen=True, slots=True)
class Ways:
    """What calls are sent by."""

    tables: TableSource
    links: Links
    admission: Admission
    ejections: Ejections
    budget: RetryBudget
    mirroring: Mirroring
    metrics: RouterMetrics
    rng: Random


class Sender:
    """Makes attempts. A call without a deadline gets ``default_deadline_s``."""

    def __init__(self, ways: Ways, default_deadline_s: float) -> None:
        self._ways = ways
        self._default_deadline_s = default_deadline_s

    async def send(
        self,
        passage: Passage,
        decision: Decision,
        features: Features,
        metadata: Metadata,
        sending: Sending,
    ) -> bytes | None:
        """The answer of the node chosen; raises what it, or the way to it, failed with."""
        attempt = self._open(passage, decision, features, metadata)
        after_s = decision.rule.route.hedge_after_s
        if after_s is not None and SEED in features.needs and not passage.target:
            hedge = partial(self._hedge, passage, decision, features, attempt)
            return await self._raced(passage, attempt, hedge, sending, after_s)
        try:
            begun = await sending.begin(attempt)
            return await self._finish(passage, attempt, sending, begun)
        except grpc.aio.AioRpcError as error:
            self._blame(attempt, error)
            raise
        finally:
            self._close(attempt)

    def remaining_s(self, passage: Passage, limit_s: float | None) -> float:
        """Time left to the call: by its own deadline, else the default, and by its rule."""
        remaining_s = passage.context.time_remaining()
        if remaining_s is None:
            remaining_s = self._default_deadline_s - (time.monotonic() - passage.arrived)
        if limit_s is not None:
            remaining_s = min(remaining_s, limit_s - (time.monotonic() - passage.arrived))
        if remaining_s <= LEAST_TIME_S:
            raise DeadlineExceeded("the call's deadline had passed before it was sent on")
        return remaining_s

    def _open(
        self, passage: Passage, decision: Decision, features: Features, metadata: Metadata
    ) -> Attempt:
        """The call to the node chosen, in the shape that its rule gives it."""
        node, body = decision.node, passage.body
        timeout_s = self.remaining_s(passage, decision.rule.route.timeout_s)
        overrides = overrides_of(decision, features, self._ways.tables.table)
        if overrides:
            body, features = body + overrides.as_bytes(), overrides.applied_to(features)
        link = self._ways.links.at(node.record.address)
        attempt = Attempt(node, link, features.forwards(diffusion=node.diffusion))
        attempt.body, attempt.metadata, attempt.timeout_s = body, metadata, timeout_s
        passage.tried, passage.timeout_s = frozenset({node.key}), timeout_s
        return attempt

    async def _raced(
        self,
        passage: Passage,
        first: Attempt,
        hedge: partial[Attempt | None],
        sending: Sending,
        after_s: float,
    ) -> bytes | None:
        """Like a plain run, with a second node asked where the first is slow."""
        attempts = [first]

        def second() -> partial[Any] | None:
            other = hedge()
            if other is None:
                return None
            attempts.append(other)
            return partial(self._begin, other, sending)

        race = Race(partial(self._begin, first, sending), second, after_s, sending.discard)
        try:
            begun = await race.result()
            winner = attempts[race.second_won]
            if len(attempts) > 1:
                self._ways.metrics.hedged(won=race.second_won)
            passage.moved_to(winner.node)
            try:
                return await self._finish(passage, winner, sending, begun)
            except grpc.aio.AioRpcError as error:
                self._blame(winner, error)
                raise
        finally:
            for attempt in attempts:
                self._close(attempt)

    def _hedge(
        self, passage: Passage, decision: Decision, features: Features, first: Attempt
    ) -> Attempt | None:
        """The same call to another node of the same version, if there is one to spare."""
        table, tried = self._ways.tables.table, frozenset({first.node.key})
        peers = pool_of(decision.node, features, table, tried).with_room()
        if not peers.nodes or not self._ways.budget.withdraw():
            return None
        other = replace(decision, node=peers.draw(self._ways.rng))
        attempt = self._open(passage, other, features, first.metadata)
        passage.tried |= tried
        return attempt

    async def _begin(self, attempt: Attempt, sending: Sending) -> Any:
        try:
            return await sending.begin(attempt)
        except grpc.aio.AioRpcError as error:
            self._blame(attempt, error)
            raise

    async def _finish(
        self, passage: Passage, attempt: Attempt, sending: Sending, begun: Any
    ) -> bytes | None:
        passage.answered = True
        answer = await sending.finish(passage, begun)
        attempt.answered()
        self._ways.ejections.succeeded(attempt.node)
        return answer

    def _close(self, attempt: Attempt) -> None:
        attempt.close()
        self._ways.admission.freed(attempt.node.record.group)

    def _blame(self, attempt: Attempt, error: grpc.aio.AioRpcError) -> None:
        if blames_node(error):
            self._ways.ejections.failed(attempt.node)
