"""Mirror and registrations through the faults of etcd and of the way to it."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from services.chassis.entries import Entry
from services.chassis.errors import RegistryUnavailable
from services.chassis.mirror import Mirror
from services.chassis.mirror_state import Changes
from services.chassis.registry import Registry
from services.chassis.transaction import Put
from services.cli.etcd_process import EtcdProcess
from tests.etcd import Link, etcdctl, new_etcd, run_etcd_tool, settings_for
from tests.eventually import eventually
from tests.ports import free_port
from tests.registering import TTL_S, leased_entry, mirroring, registering

NODES = "/braid/nodes/"
WORKERS = tuple(f"/braid/nodes/g/w{number}" for number in (1, 2, 3))


@pytest.fixture
async def own_registry(own_etcd: EtcdProcess) -> AsyncIterator[Registry]:
    """A client of the etcd that the test may break."""
    async with Registry(settings_for(own_etcd.endpoint)) as registry:
        yield registry


async def equal_to_etcd(mirror: Mirror, registry: Registry) -> bool:
    """Whether the mirror is connected and holds what etcd lists now."""
    try:
        listing = await registry.list(NODES)
    except RegistryUnavailable:
        return False
    return mirror.state.connected and dict(mirror.state.entries) == dict(listing.entries)


def epochs(mirror: Mirror) -> dict[str, bytes]:
    return {key: entry.value for key, entry in mirror.state.entries.items()}


async def test_etcd_restarts(own_etcd: EtcdProcess, own_registry: Registry) -> None:
    """After a crash and restart of etcd the lease goes on, and the mirror misses nothing."""
    async with (
        registering(own_registry, WORKERS[0]),
        mirroring(Mirror(own_registry, NODES)) as mirror,
    ):
        before = await leased_entry(own_registry, WORKERS[0])
        own_etcd.kill()
        await eventually(lambda: not mirror.state.connected)
        assert set(mirror.state.entries) == {WORKERS[0]}
        own_etcd.start()
        etcdctl(own_etcd, "put", NODES + "g/other", "x")
        await eventually(lambda: equal_to_etcd(mirror, own_registry))
        assert set(mirror.state.entries) == {WORKERS[0], NODES + "g/other"}
        assert mirror.state.entries[WORKERS[0]] == before


async def test_etcd_freezes_for_three_lives(own_etcd: EtcdProcess, own_registry: Registry) -> None:
    """The mirror keeps all nodes and says it is stale; after the bulk expiry all are back.

    Each deletion comes with what was there, so that a reader can tell an expiry
    from a departure. Every owner warns once of etcd and once of its lease.
    """
    told: list[Changes] = []
    with capture_logs() as lines:
        async with (
            registering(own_registry, WORKERS[0]),
            registering(own_registry, WORKERS[1]),
            registering(own_registry, WORKERS[2]),
            mirroring(Mirror(own_registry, NODES)) as mirror,
        ):
            before = epochs(mirror)
            mirror.subscribe(lambda _state, changes: told.append(changes))
            own_etcd.pause()
            await eventually(lambda: not mirror.state.connected)
            await asyncio.sleep(max(0, 3 * TTL_S - mirror.state.age_s(time.monotonic())))
            assert set(mirror.state.entries) == set(WORKERS)
            assert mirror.state.age_s(time.monotonic()) >= 3 * TTL_S
            own_etcd.resume()
            resumed = time.monotonic()
            await eventually(lambda: set(epochs(mirror).items()).isdisjoint(before.items()))
            await eventually(lambda: set(mirror.state.entries) == set(WORKERS))
            took_s = time.monotonic() - resumed
            print(f"all re-registered after {took_s:.2f} s")
            assert took_s < 3 * TTL_S
    deleted = {key: changes.previous[key] for changes in told for key in changes.deleted}
    assert all(entry.lease and entry.value == before[key] for key, entry in deleted.items())
    warnings = [line["event"] for line in lines if line["log_level"] == "warning"]
    assert warnings.count("registration_lost") == len(WORKERS)
    assert warnings.count("registry_unreachable") <= len(WORKERS)
    assert warnings.count("mirror_interrupted") == 1


async def test_data_wiped(own_etcd: EtcdProcess, own_registry: Registry) -> None:
    """Etcd comes back empty, at an earlier revision: the worker is put back, ghosts are gone."""
    for number in range(5):
        await own_registry.put(NODES + "g/ghost", b"%d" % number)
    with capture_logs() as lines:
        async with (
            registering(own_registry, WORKERS[0]),
            mirroring(Mirror(own_registry, NODES)) as mirror,
        ):
            old = epochs(mirror)[WORKERS[0]]
            own_etcd.kill()
            shutil.rmtree(own_etcd.data_dir)
            own_etcd.start()
            await eventually(lambda: epochs(mirror).get(WORKERS[0], old) != old)
            assert set(mirror.state.entries) == {WORKERS[0]}
    events = [line["event"] for line in lines if line["log_level"] == "warning"]
    assert events.count("registry_history_changed") == 1
    assert events.count("registration_lost") == 1


@pytest.fixture
def other_cluster(own_etcd: EtcdProcess, tmp_path: Path) -> Iterator[EtcdProcess]:
    """An etcd of another cluster, not yet started, at the same address."""
    etcd = new_etcd(
        tmp_path / "other", "--initial-cluster-token=other", client_port=own_etcd.client_port
    )
    yield etcd
    etcd.kill()


async def test_another_cluster(
    own_etcd: EtcdProcess, own_registry: Registry, other_cluster: EtcdProcess
) -> None:
    """A new cluster whose revision is already higher is recognised, and its keys are taken."""
    await own_registry.put(NODES + "g/ghost", b"x")
    with capture_logs() as lines:
        async with mirroring(Mirror(own_registry, NODES)) as mirror:
            own_etcd.kill()
            other_cluster.start()
            for value in "xyz":
                etcdctl(other_cluster, "put", NODES + "g/new", value)
            await eventually(lambda: set(mirror.state.entries) == {NODES + "g/new"})
    assert "registry_history_changed" in [line["event"] for line in lines]


async def test_snapshot_restored(own_etcd: EtcdProcess, own_registry: Registry) -> None:
    """After a restore of an old snapshot the mirror equals the restored keys, not the newer ones.

    A worker whose lease the snapshot does not know registers anew.
    """
    async with mirroring(Mirror(own_registry, NODES)) as mirror:
        await own_registry.put(NODES + "g/old", b"1")
        saved = own_etcd.data_dir.parent / "saved.db"
        etcdctl(own_etcd, "snapshot", "save", str(saved))
        await own_registry.put(NODES + "g/old", b"2")
        await own_registry.put(NODES + "g/newer", b"2")
        async with registering(own_registry, WORKERS[0]):
            await eventually(lambda: len(mirror.state.entries) == 3)
            own_etcd.kill()
            shutil.rmtree(own_etcd.data_dir)
            run_etcd_tool(
                "etcdutl",
                "snapshot",
                "restore",
                str(saved),
                f"--data-dir={own_etcd.data_dir}",
                "--name=braid",
                f"--initial-cluster=braid=http://127.0.0.1:{own_etcd.peer_port}",
                f"--initial-advertise-peer-urls=http://127.0.0.1:{own_etcd.peer_port}",
            )
            own_etcd.start()
            expected = {NODES + "g/old", WORKERS[0]}
            await eventually(lambda: set(mirror.state.entries) == expected)
            assert mirror.state.entries[NODES + "g/old"].value == b"1"
            await eventually(lambda: equal_to_etcd(mirror, own_registry))


async def test_link_cut_inside_a_revision(etcd: EtcdProcess, registry: Registry) -> None:
    """Five workers in one revision, the link cut in the middle of its message: none is missing."""
    told: list[Changes] = []
    async with (
        Link(etcd.client_port).listening() as link,
        Registry(settings_for(link.address)) as through_link,
        mirroring(Mirror(through_link, NODES)) as mirror,
    ):
        mirror.subscribe(lambda _state, changes: told.append(changes))
        link.cut_inside_answers(after_bytes=3_000)
        await registry.transact((), [Put(f"{NODES}g/w{n}", b"x" * 1_000) for n in range(5)])
        await eventually(lambda: equal_to_etcd(mirror, registry))
        assert len(mirror.state.entries) == 5
        assert link.accepted > 1
    sizes = {len(changes.put) for changes in told}
    assert sizes <= {0, 5}  # whole or not at all


async def test_silent_link(etcd: EtcdProcess, registry: Registry) -> None:
    """A link that dies without a word is noticed in a few seconds and replaced."""
    async with (
        Link(etcd.client_port).listening() as link,
        Registry(settings_for(link.address)) as through_link,
        mirroring(Mirror(through_link, NODES)) as mirror,
        registering(through_link, WORKERS[0], ttl_s=6),
    ):
        await eventually(lambda: set(mirror.state.entries) == {WORKERS[0]})
        old = await leased_entry(registry, WORKERS[0])
        link.silence()
        silent = time.monotonic()
        await registry.put(NODES + "g/other", b"x")
        await eventually(lambda: len(mirror.state.entries) == 2)
        print(f"a silent link was noticed and replaced after {time.monotonic() - silent:.2f} s")
        await eventually(lambda: renewed_since(registry, old, silent))


async def renewed_since(registry: Registry, entry: Entry, moment: float) -> bool:
    """Whether the lease of ``entry`` was renewed after ``moment``."""
    life = await registry.time_to_live(entry.lease)
    return life.left_s > life.granted_s - (time.monotonic() - moment)


def etcd_calls(etcd: EtcdProcess) -> float:
    """Calls of lists and watches that etcd has taken since it started."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://{etcd.endpoint}/metrics", timeout=5) as answer:
        lines = answer.read().decode().splitlines()
    counters = (line for line in lines if line.startswith("grpc_server_started_total{"))
    methods = ('grpc_method="Range"', 'grpc_method="Watch"')
    return sum(
        float(line.rsplit(" ", 1)[1]) for line in counters if any(m in line for m in methods)
    )


async def test_flapping_link(etcd: EtcdProcess, registry: Registry) -> None:
    """While the watch breaks again and again, etcd gets few calls and the log one warning."""
    with capture_logs() as lines:
        rate = await rate_of_calls_while_flapping(etcd, registry)
    print(f"{rate:.1f} calls/s while the link flaps")
    assert rate < 5
    assert [line["event"] for line in lines].count("mirror_interrupted") == 1


async def rate_of_calls_while_flapping(etcd: EtcdProcess, registry: Registry) -> float:
    """Calls a second that a mirror makes whose link is cut all the time; it recovers after."""
    async with (
        Link(etcd.client_port).listening() as link,
        Registry(settings_for(link.address)) as through_link,
        mirroring(Mirror(through_link, NODES)) as mirror,
    ):
        first, started = etcd_calls(etcd), time.monotonic()
        while time.monotonic() < started + 2:
            link.cut()
            await asyncio.sleep(0.02)
        rate = (etcd_calls(etcd) - first) / (time.monotonic() - started)
        await eventually(lambda: equal_to_etcd(mirror, registry))
        return rate


class Follower:
    """The following process and what it printed."""

    def __init__(self, *arguments: str) -> None:
        self.lines: list[dict[str, Any]] = []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.following_process", *arguments],
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    @property
    def keys(self) -> dict[str, int]:
        """The keys of its latest state, with their revisions."""
        states: list[dict[str, int]] = [line["keys"] for line in self.lines if "keys" in line]
        return states[-1] if states else {}

    @property
    def reasons(self) -> str:
        """Why its mirror was interrupted."""
        return " ".join(line["reason"] for line in self.lines if "reason" in line)

    def end(self) -> None:
        """Kills it and reads the rest."""
        self.process.kill()
        self.process.wait()
        self._reader.join()

    def _read(self) -> None:
        assert self.process.stdout
        with self.process.stdout as lines:
            self.lines.extend(map(json.loads, lines))


async def test_frozen_follower_and_compaction(
    own_etcd: EtcdProcess, own_registry: Registry
) -> None:
    """Frozen while changes pass and are compacted away, a follower relists and is right.

    Its lease expires meanwhile, and its record comes back by itself.
    """
    await own_registry.put(NODES + "g/vanishing", b"x")
    follower = Follower(own_etcd.endpoint, WORKERS[0], NODES, str(TTL_S))
    try:
        await eventually(lambda: {WORKERS[0], NODES + "g/vanishing"} <= set(follower.keys))
        old = await leased_entry(own_registry, WORKERS[0])
        follower.process.send_signal(signal.SIGSTOP)
        for number in range(150):
            key = f"{NODES}g/x{number}"
            await own_registry.put(key, b"x" * 60_000)
            await own_registry.delete(key)
        revision = await own_registry.delete(NODES + "g/vanishing")
        etcdctl(own_etcd, "compact", str(revision))
        await eventually(lambda: gone(own_registry, WORKERS[0]))
        calls = etcd_calls(own_etcd)
        follower.process.send_signal(signal.SIGCONT)
        new = await eventually(lambda: own_registry.get(WORKERS[0]))
        assert new
        assert new.lease != old.lease
        await eventually(lambda: follower.keys == {WORKERS[0]: new.mod_revision})
        assert "compacted" in follower.reasons
        assert etcd_calls(own_etcd) - calls < 200
    finally:
        follower.end()


async def gone(registry: Registry, key: str) -> bool:
    """Whether nothing is stored under the key."""
    return await registry.get(key) is None


async def test_starts_from_disk_before_etcd(own_etcd: EtcdProcess, tmp_path: Path) -> None:
    """Started while etcd is down: the saved nodes serve; what vanished meanwhile goes later."""
    saved = tmp_path / "registry.json"
    async with Registry(settings_for(own_etcd.endpoint)) as registry:
        await registry.put(NODES + "g/leaving", b"x")
        await registry.put(NODES + "g/staying", b"x")
        async with mirroring(Mirror(registry, NODES, saved)):
            await eventually(saved.exists)
        await registry.delete(NODES + "g/leaving")
    own_etcd.kill()
    told: list[Changes] = []
    async with (
        Registry(settings_for(own_etcd.endpoint)) as registry,
        mirroring(Mirror(registry, NODES, saved)) as mirror,
    ):
        assert set(mirror.state.entries) == {NODES + "g/leaving", NODES + "g/staying"}
        mirror.subscribe(lambda _state, changes: told.append(changes))
        own_etcd.start()
        await eventually(lambda: equal_to_etcd(mirror, registry))
        assert not mirror.state.from_disk
    assert told[-1].deleted == (NODES + "g/leaving",)
    assert told[-1].relisted


async def test_registers_once_etcd_is_there(stopped_etcd: EtcdProcess) -> None:
    """A worker that starts before etcd waits with one warning and registers when it comes."""
    with capture_logs() as lines:
        async with Registry(settings_for(stopped_etcd.endpoint)) as registry:
            starting = asyncio.create_task(asyncio.to_thread(start_late, stopped_etcd))
            async with registering(registry, WORKERS[0]):
                await leased_entry(registry, WORKERS[0])
            await starting
    warnings = [line["event"] for line in lines if line["log_level"] == "warning"]
    assert warnings == ["registry_unreachable"]


def start_late(etcd: EtcdProcess) -> None:
    """Starts etcd after a few attempts of its clients."""
    time.sleep(1)
    etcd.start()


async def test_withdrawal_does_not_wait_for_a_frozen_etcd(
    own_etcd: EtcdProcess, own_registry: Registry
) -> None:
    """A worker that stops while etcd is frozen is not held up for long."""
    async with registering(own_registry, WORKERS[0]) as registration:
        own_etcd.pause()
        started = time.monotonic()
        await registration.withdraw()
        assert time.monotonic() - started < 5
        own_etcd.resume()


async def test_one_of_two_endpoints_fails(etcd: EtcdProcess, registry: Registry) -> None:
    """Mirror and registration go over to the other endpoint and stay whole."""
    async with (
        Link(etcd.client_port).listening() as first,
        Link(etcd.client_port).listening() as second,
        Registry(settings_for(first.address, second.address)) as through_links,
        mirroring(Mirror(through_links, NODES)) as mirror,
        registering(through_links, WORKERS[0]),
    ):
        await eventually(lambda: set(mirror.state.entries) == {WORKERS[0]})
        old = await leased_entry(registry, WORKERS[0])
        first.refuse()
        await registry.put(NODES + "g/other", b"x")
        await eventually(lambda: equal_to_etcd(mirror, registry))
        await asyncio.sleep(TTL_S)
        assert (await leased_entry(registry, WORKERS[0])) == old


@pytest.fixture
def two_members(tmp_path: Path) -> Iterator[tuple[EtcdProcess, EtcdProcess]]:
    """A cluster of two, which loses its leader as soon as either is frozen."""
    peers = free_port(), free_port()
    cluster = ",".join(f"m{place}=http://127.0.0.1:{port}" for place, port in enumerate(peers))
    quick = "--heartbeat-interval=30", "--election-timeout=300"
    members = tuple(
        EtcdProcess(
            tmp_path / f"m{place}",
            free_port(),
            port,
            fsync=False,
            arguments=(f"--name=m{place}", f"--initial-cluster={cluster}", *quick),
        )
        for place, port in enumerate(peers)
    )
    with ThreadPoolExecutor() as pool:  # neither answers before the other is there
        list(pool.map(EtcdProcess.start, members))
    yield members[0], members[1]
    for member in members:
        member.kill()


async def test_member_without_a_leader(two_members: tuple[EtcdProcess, EtcdProcess]) -> None:
    """A member that answers and is cut off from its cluster does not pass for a fresh source."""
    here, there = two_members
    async with (
        Registry(settings_for(here.endpoint)) as registry,
        mirroring(Mirror(registry, NODES)) as mirror,
    ):
        await registry.put(NODES + "g/w", b"1")
        await eventually(lambda: mirror.state.entries)
        there.pause()
        await eventually(lambda: not mirror.state.connected)
        assert set(mirror.state.entries) == {NODES + "g/w"}
        there.resume()
        await eventually(lambda: equal_to_etcd(mirror, registry), 15)
