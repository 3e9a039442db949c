"""Fetching processes that are killed, stopped, or meet another one."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest

from braid.config.v1.config_pb2 import ModelVersion
from services.generation.weights import WeightCache
from tests.checkpoints import record_of
from tests.eventually import eventually
from tests.generation.weights.conftest import blobs, bring, names
from tests.generation.weights.fetching import REFUSED, STOPPED, start
from tests.generation.weights.file_server import FileServer
from tests.generation.weights.policy import POLICY

KILLS = 20
SIZE = 240 * 1024

Start = Callable[[], ForkServerProcess]


@pytest.fixture
def store(store: Path) -> Path:
    """The version with a file of 240 ranges."""
    (store / "b.safetensors").write_bytes(random.Random(0).randbytes(SIZE))
    return store


@pytest.fixture
def start_one(server: FileServer, record: ModelVersion, tmp_path: Path) -> Iterator[Start]:
    """Starts a fetch from a slow server into the cache; ends what is left of them."""
    server.pause_s = 0.03
    started = list[ForkServerProcess]()

    def start_now() -> ForkServerProcess:
        started.append(start(tmp_path / "cache", record))
        return started[-1]

    yield start_now
    for process in started:
        process.kill()
        process.join()


def whole(folder: Path) -> set[str]:
    """Names of finished content, each of which must be the hash of what is in it."""
    finished = {name for name in blobs(folder) if "." not in name}
    for name in finished:
        assert hashlib.sha256((folder / "sha256" / name).read_bytes()).hexdigest() == name
    return finished


async def server_sends(server: FileServer, count: int) -> None:
    """Returns once it has sent so many bytes more."""
    enough = server.sent_bytes + count
    await eventually(lambda: server.sent_bytes >= enough, 60)


async def test_killed_in_mid_download_again_and_again(
    server: FileServer, start_one: Start, record: ModelVersion, tmp_path: Path
) -> None:
    """After kill -9 at any moment the cache holds nothing wrong, and the next fetch goes on."""
    folder, luck = tmp_path / "cache", random.Random(1)
    for _ in range(KILLS):
        process = start_one()
        await server_sends(server, luck.randrange(1, 8 * 1024))
        process.kill()
        process.join()
        assert record.files[1].sha256 not in whole(folder)
        assert not (folder / "versions").exists()
    server.pause_s = 0
    last = start_one()
    last.join(60)
    assert last.exitcode == 0
    assert whole(folder) == {file.sha256 for file in record.files}
    assert blobs(folder) == whole(folder)
    assert server.sent_bytes < 2 * SIZE


async def test_two_workers_fetch_once(
    server: FileServer, start_one: Start, record: ModelVersion, tmp_path: Path
) -> None:
    """Of two workers that start at once one fetches and the other waits for it."""
    server.pause_s = 0.01
    pair = start_one(), start_one()
    for process in pair:
        process.join(60)
    assert [process.exitcode for process in pair] == [0, 0]
    assert server.sent_bytes == SIZE + 2
    [version] = names(tmp_path / "cache" / "versions" / "tiny")
    assert version.startswith("v1-")


async def test_stop_ends_a_fetch_at_once(
    server: FileServer, start_one: Start, record: ModelVersion, tmp_path: Path
) -> None:
    """A worker told to stop leaves a fetch that would take minutes, and nothing is lost."""
    process = start_one()
    await server_sends(server, SIZE // 10)
    server.pause_s = 100.0
    process.terminate()
    process.join(60)
    assert process.exitcode == STOPPED
    before, server.pause_s = server.sent_bytes, 0
    bring(WeightCache(tmp_path / "cache", POLICY), record)
    assert server.sent_bytes - before < SIZE


async def test_store_that_changed_under_a_broken_off_fetch(
    server: FileServer, start_one: Start, store: Path, tmp_path: Path
) -> None:
    """Ranges of two different files never make one: the hash tells, and all is fetched anew."""
    good = (store / "b.safetensors").read_bytes()
    (store / "b.safetensors").write_bytes(bytes(SIZE))
    process = start_one()
    await server_sends(server, SIZE // 10)
    process.kill()
    (store / "b.safetensors").write_bytes(good)
    server.pause_s = 0
    record = record_of(store)
    record.uri = server.uri
    assert (
        bring(WeightCache(tmp_path / "cache", POLICY), record) / "b.safetensors"
    ).read_bytes() == good


@pytest.mark.usefixtures("server")
def test_disk_that_refuses_leaves_nothing_wrong(record: ModelVersion, tmp_path: Path) -> None:
    """A write that fails is an operator's to mend; with room the next fetch is whole."""
    process = start(tmp_path / "cache", record, largest_file=SIZE // 2)
    process.join(60)
    assert process.exitcode == REFUSED
    assert record.files[1].sha256 not in whole(tmp_path / "cache")
    bring(WeightCache(tmp_path / "cache", POLICY), record)
    assert whole(tmp_path / "cache") == {file.sha256 for file in record.files}
