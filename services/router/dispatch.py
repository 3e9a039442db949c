"""Getting a call to a node: choosing, sending, and sending again where that is safe."""

from __future__ import annotations

import time

import grpc.aio

from services.chassis.errors import RegistryUnavailable, ServiceError
from services.router.attempt import Metadata, Sending
from services.router.features import Features
from services.router.passage import Passage
from services.router.policy import Decision, choose, pinned
from services.router.pool import NOBODY
from services.router.sender import Sender, Ways
from services.router.worker_failures import may_go_again, own_fault

MOST_TRIES = 3
"""Nodes that one call may be sent to, one after another."""


class Dispatcher:
    """Carries calls to nodes."""

    def __init__(self, ways: Ways, sender: Sender) -> None:
        self._ways = ways
        self._sender = sender
        ways.metrics.retry_budget.set_function(lambda: ways.budget.balance)

    async def carry(
        self, passage: Passage, features: Features, metadata: Metadata, sending: Sending
    ) -> bytes | None:
        """The answer, by the first node that gives one.

        Another node is tried only before the first byte, where the first surely
        did not start or the caller says that it may, and while the budget lasts.
        """
        self._ways.budget.deposit()
        tried, failure = NOBODY, None
        while True:
            decision = self._decide(passage, features, tried, failure)
            if decision.node.load.saturated and not passage.target:
                decision = await self._admitted(passage, decision, features, tried)
            try:
                answer = await self._sender.send(passage, decision, features, metadata, sending)
            except grpc.aio.AioRpcError as error:
                tried = tried | passage.tried
                if not self._goes_again(passage, features, error, len(tried)):
                    raise own_fault(error) or error from None
                failure = error
            else:
                if decision.rule.route.mirror is not None and not passage.target:
                    mirror = decision.rule.route.mirror
                    self._ways.mirroring.copy(mirror, passage, features, passage.last)
                return answer

    def _decide(
        self,
        passage: Passage,
        features: Features,
        tried: frozenset[str],
        failure: grpc.aio.AioRpcError | None,
    ) -> Decision:
        """The next node; where there is none left, the call ends as it failed before."""
        if not self._ways.tables.loaded:
            raise RegistryUnavailable("the registry has not answered yet", retry_after_s=1.0)
        table = self._ways.tables.table
        try:
            if passage.target:
                decision = pinned(passage.target, features, table, tried)
            else:
                decision = choose(features, table, self._ways.rng, tried)
        except ServiceError:
            if failure is None:
                raise
            raise own_fault(failure) or failure from None
        return _settled(passage, decision)

    async def _admitted(
        self, passage: Passage, decision: Decision, features: Features, tried: frozenset[str]
    ) -> Decision:
        """A node with room for a call that met none, perhaps after a while."""
        left_s = self._sender.remaining_s(passage, decision.rule.route.timeout_s)
        ends_at = time.monotonic() + left_s
        placed = await self._ways.admission.place(decision, features, ends_at, tried)
        return _settled(passage, placed)

    def _goes_again(
        self, passage: Passage, features: Features, error: grpc.aio.AioRpcError, tries: int
    ) -> bool:
        if passage.answered or tries >= MOST_TRIES:
            return False
        if not may_go_again(error, retry_safe=features.retry_safe):
            return False
        allowed = self._ways.budget.withdraw()
        self._ways.metrics.retried(allowed=allowed)
        return allowed


def _settled(passage: Passage, decision: Decision) -> Decision:
    """Puts the decision on record; raises where the caller may not be served by it."""
    if passage.check:
        passage.check(decision)
    passage.decision = decision
    return decision
