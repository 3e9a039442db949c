"""Following real status streams over sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from braid.worker.v1 import worker_pb2
from services.router import node_watch
from services.router.links import Links
from services.router.node_watch import NodeWatches
from tests.etcd import Link
from tests.eventually import eventually
from tests.fakes.worker import DRAINING, READY, FakeWorker


class Notebook:
    """Writes down what a watch says."""

    def __init__(self) -> None:
        self.statuses: list[worker_pb2.NodeStatus] = []
        self.losses: list[str] = []

    def seen(self, _key: str, status: worker_pb2.NodeStatus) -> None:
        """A status."""
        self.statuses.append(status)

    def lost(self, _key: str, reason: str) -> None:
        """A loss."""
        self.losses.append(reason)


class Watching:
    """One worker, watched."""

    def __init__(self, worker: FakeWorker, watches: NodeWatches, links: Links) -> None:
        self.worker = worker
        self.watches = watches
        self.links = links
        self.notebook = Notebook()

    def start(self) -> None:
        """Begins, or begins anew."""
        self.watches.start(self.worker.key, self.worker.record, self.notebook)


@pytest.fixture
async def watching() -> AsyncIterator[Watching]:
    """A running worker and a watch that is not yet started."""
    worker = FakeWorker()
    await worker.start()
    async with asyncio.TaskGroup() as tasks:
        links = Links(tasks)
        watches = NodeWatches(tasks, links)
        yield Watching(worker, watches, links)
        watches.stop(worker.key)
        links.retire(worker.record.address)
    await worker.stop()


async def test_statuses_arrive_as_they_change(watching: Watching) -> None:
    """The first status comes at once, each change soon after it is made."""
    watching.start()
    await eventually(lambda: watching.notebook.statuses == [READY])
    await watching.worker.report(DRAINING)
    await eventually(lambda: watching.notebook.statuses[-1] == DRAINING)
    assert not watching.notebook.losses


async def test_broken_stream_is_a_loss_and_heals(watching: Watching) -> None:
    """A worker that goes away is lost, and seen again when it is back on the same ports."""
    worker = watching.worker
    watching.start()
    await eventually(lambda: watching.notebook.statuses)
    await worker.stop()
    await eventually(lambda: watching.notebook.losses)
    watching.notebook.statuses.clear()
    await worker.start(worker.port, worker.admin_port)
    await eventually(lambda: watching.notebook.statuses)


async def test_silent_stream_is_a_loss(watching: Watching, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that keeps its connection but says nothing is lost."""
    monkeypatch.setattr(node_watch, "SILENCE_S", 0.2)
    monkeypatch.setattr(node_watch, "SECOND_LOOK_S", 0.1)
    watching.start()
    await eventually(lambda: watching.notebook.losses)
    assert "silent" in watching.notebook.losses[0]


async def test_inference_port_must_answer(
    watching: Watching, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node whose inference port is not reachable is not seen, whatever it says of itself."""
    monkeypatch.setattr(node_watch, "CONNECT_S", 0.2)
    watching.worker.record.address = "127.0.0.1:9"
    watching.start()
    await eventually(lambda: watching.notebook.losses)
    assert "inference port" in watching.notebook.losses[0]
    assert not watching.notebook.statuses


async def test_stopped_watch_says_nothing_more(watching: Watching) -> None:
    """After a stop no status and no loss is reported."""
    watching.start()
    await eventually(lambda: watching.notebook.statuses)
    watching.watches.stop(watching.worker.key)
    await watching.worker.stop()
    await asyncio.sleep(0.1)
    assert not watching.notebook.losses
    await watching.worker.start()


async def test_cut_link_is_no_loss(watching: Watching, monkeypatch: pytest.MonkeyPatch) -> None:
    """A status stream that breaks while its node lives is opened anew without a loss."""
    monkeypatch.setattr(node_watch, "STEADY_S", 0.0)
    worker = watching.worker
    async with Link(worker.admin_port).listening() as link:
        worker.record.admin_address = link.address
        watching.start()
        await eventually(lambda: watching.notebook.statuses)
        watching.notebook.statuses.clear()
        link.cut()
        await eventually(lambda: watching.notebook.statuses)
        assert not watching.notebook.losses
