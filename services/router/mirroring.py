"""Copies of calls to another group or version, for comparison; their callers never notice."""

from __future__ import annotations

import asyncio
import time
from random import Random

import grpc.aio

from braid.inference.v1 import inference_pb2 as pb
from services.router.admission import Admission
from services.router.attempt import Attempt, WholeAnswer
from services.router.comparison import Comparisons, Outcome, answered
from services.router.features import Features
from services.router.links import Links
from services.router.metrics import RouterMetrics
from services.router.node import TableNode
from services.router.passage import Passage, TableSource
from services.router.policy import shadow_of
from services.router.rules import Mirror

MOST_AT_ONCE = 8
"""Copies under way; what comes on top is dropped."""


class Mirroring:
    """Sends copies and compares; keeps nothing of what was asked or answered.

    Copies are the first to go under load: there are few at once, they take only
    nodes with room and go only while nobody waits for their group, and on a node
    they have the lowest class.
    """

    def __init__(
        self,
        tasks: asyncio.TaskGroup,
        tables: TableSource,
        links: Links,
        admission: Admission,
        metrics: RouterMetrics,
        rng: Random,
    ) -> None:
        self.comparisons = Comparisons()
        self._tasks = tasks
        self._tables = tables
        self._links = links
        self._admission = admission
        self._metrics = metrics
        self._rng = rng
        self._running: set[asyncio.Task[None]] = set()
        self._whole = WholeAnswer()

    def copy(self, mirror: Mirror, passage: Passage, features: Features, answer: bytes) -> None:
        """Considers a call that was just answered; ``answer`` is its last message."""
        if self._rng.random() >= mirror.share:
            return
        node = self._node(mirror, features)
        if node is None:
            self._metrics.mirrored("dropped")
            return
        seconds = time.monotonic() - passage.arrived
        original = answered(answer, features, seconds, stream=passage.streamed)
        work = self._compare(node, passage, features, original)
        task = self._tasks.create_task(work, name="mirror")
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def close(self) -> None:
        """Ends every copy."""
        for task in tuple(self._running):
            task.cancel()

    def _node(self, mirror: Mirror, features: Features) -> TableNode | None:
        if len(self._running) >= MOST_AT_ONCE or mirror.group in self._admission.lines:
            return None
        return shadow_of(mirror, features, self._tables.table, self._rng)

    async def _compare(
        self, node: TableNode, passage: Passage, features: Features, original: Outcome
    ) -> None:
        decision = passage.decision
        if decision is None:
            return
        copy = await self._run(node, passage, features)
        there, here = node.record, decision.node.record
        pair = (there.group, there.model, there.version, here.model, here.version)
        self.comparisons.note(pair, original, copy)
        self._metrics.mirrored("compared" if copy.code == "OK" else "failed")

    async def _run(self, node: TableNode, passage: Passage, features: Features) -> Outcome:
        link = self._links.at(node.record.address)
        attempt = Attempt(node, link, features.forwards(diffusion=node.diffusion))
        attempt.body = passage.body + _as_copy(node, features)
        attempt.timeout_s = passage.timeout_s
        started = time.monotonic()
        try:
            answer = await self._whole.begin(attempt)
        except grpc.aio.AioRpcError as error:
            return Outcome(error.code().name, False, 0, time.monotonic() - started)
        finally:
            attempt.close()
            self._admission.freed(node.record.group)
        return answered(answer, features, time.monotonic() - started, stream=False)


def _as_copy(node: TableNode, features: Features) -> bytes:
    """Fields to append to a request: the lowest class, and the node's model where one is named."""
    model = node.record.model if features.model else ""
    return pb.GenerateRequest(priority=pb.PRIORITY_BATCH, model=model).SerializeToString()
