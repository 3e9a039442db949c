"""One router process that most tests share, and workers before it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from services.cli.etcd_process import EtcdProcess
from tests.eventually import eventually
from tests.fakes.worker import FakeWorker
from tests.router.processes import START_S, Router, RouterProcess, connected


@pytest.fixture(scope="session")
def shared_router(
    shared_etcd: EtcdProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RouterProcess]:
    """A router of the shared etcd, for all tests that leave it running."""
    process = RouterProcess(shared_etcd.endpoint, tmp_path_factory.mktemp("router"))
    yield process
    process.kill()


@pytest.fixture
async def router(shared_router: RouterProcess, etcd: EtcdProcess) -> AsyncIterator[Router]:
    """The shared router, which has seen that its registry is empty."""
    async with connected(shared_router) as router:
        await eventually(router.serving, START_S)

        async def empty() -> bool:
            table = await router.table()
            return not table.nodes and not table.traffic and table.policy_built_in

        await eventually(empty)
        yield router


@pytest.fixture
async def workers() -> AsyncIterator[list[FakeWorker]]:
    """Two running workers of one model, w1 of version v1 and w2 of v2; not registered."""
    running = [FakeWorker("w1"), FakeWorker("w2", version="v2")]
    for worker in running:
        await worker.start()
    yield running
    for worker in running:
        await worker.stop()
