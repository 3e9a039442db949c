"""The table in force: registry news and status streams brought together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

import pytest

from braid.worker.v1 import worker_pb2
from services.chassis.entries import Entry
from services.chassis.mirror_state import Changes, MirrorState
from services.router.links import Links
from services.router.live_table import UNSEEN, LiveTable
from services.router.node_watch import Observer
from tests.fakes.worker import DRAINING, READY, FakeWorker

LOST = "does not answer: UNAVAILABLE"


class FakeWatches:
    """Notes which nodes are watched; the test plays what they say."""

    def __init__(self) -> None:
        self.running: dict[str, str] = {}

    def start(self, key: str, record: worker_pb2.Node, _observer: Observer) -> None:
        """A watch begins."""
        self.running[key] = record.admin_address

    def stop(self, key: str) -> None:
        """A watch ends."""
        self.running.pop(key, None)


class Registry:
    """Plays the registry: each call is one revision."""

    def __init__(self, live: LiveTable) -> None:
        self._live = live
        self._revision = 0

    def put(self, values: Mapping[str, bytes]) -> None:
        """Puts all the values in one revision."""
        self._revision += 1
        entries = tuple(Entry(key, value, self._revision) for key, value in values.items())
        self._live.apply(MirrorState(revision=self._revision), Changes(put=entries))

    def delete(self, *keys: str) -> None:
        """Deletes all the keys in one revision."""
        self._revision += 1
        self._live.apply(MirrorState(revision=self._revision), Changes(deleted=keys))


class Scene:
    """A live table with everything around it played by the test."""

    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        self.watches = FakeWatches()
        self.live = LiveTable(self.watches, Links(tasks))  # type: ignore[arg-type]
        self.registry = Registry(self.live)

    def node(self, worker: FakeWorker) -> tuple[str, int, bool]:
        """Reason, weight and lingering of a worker's node."""
        node = self.live.table.nodes[worker.key]
        return node.reason, node.weight, node.lingering


def listening(node_id: str, *, watched: bool = True, version: str = "v1") -> FakeWorker:
    """A worker that has addresses, though nobody listens there."""
    worker = FakeWorker(node_id, version=version)
    worker.record.address = f"127.0.0.1:{1000 + len(node_id)}"
    worker.record.admin_address = "127.0.0.1:2" if watched else ""
    return worker


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    """An empty live table."""
    async with asyncio.TaskGroup() as tasks:
        yield Scene(tasks)


async def test_nothing_is_loaded_before_the_first_news(scene: Scene) -> None:
    """Until the registry was read, nobody knows which nodes there are."""
    assert not scene.live.loaded
    scene.registry.put({})
    assert scene.live.loaded


async def test_watched_node_waits_for_its_status(scene: Scene) -> None:
    """A node with a status stream takes calls once that says READY and accepting."""
    worker = listening("w1")
    scene.registry.put({worker.key: worker.value})
    assert scene.node(worker)[0] == UNSEEN
    scene.live.seen(worker.key, READY)
    assert scene.node(worker)[0] == ""
    scene.live.seen(worker.key, worker_pb2.NodeStatus(state=worker_pb2.NODE_STATE_READY))
    assert scene.node(worker)[0] == "not accepting"


async def test_node_without_status_stream_takes_calls_at_once(scene: Scene) -> None:
    """A node without an admin address is routed by its record alone, and goes with it."""
    worker = listening("w1", watched=False)
    scene.registry.put({worker.key: worker.value})
    assert scene.node(worker)[0] == ""
    assert not scene.watches.running
    scene.registry.delete(worker.key)
    assert not scene.live.table.nodes


async def test_lost_node_is_not_chosen_and_comes_back(scene: Scene) -> None:
    """A node whose stream breaks stays known, out of the pool, until it is seen again."""
    worker = listening("w1")
    scene.registry.put({worker.key: worker.value})
    scene.live.seen(worker.key, READY)
    scene.live.lost(worker.key, LOST)
    assert scene.node(worker)[0] == LOST
    scene.live.seen(worker.key, READY)
    assert scene.node(worker)[0] == ""


async def test_mass_expiry_does_not_empty_the_table(scene: Scene) -> None:
    """Nodes whose records all vanish at once stay while their streams say READY."""
    workers = [listening(f"w{index}") for index in range(3)]
    scene.registry.put({worker.key: worker.value for worker in workers})
    for worker in workers:
        scene.live.seen(worker.key, READY)
    scene.registry.delete(*(worker.key for worker in workers))
    assert [scene.node(worker) for worker in workers] == [("", 100, True)] * 3
    scene.registry.put({workers[0].key: workers[0].value})
    assert scene.node(workers[0]) == ("", 100, False)
    scene.live.lost(workers[1].key, LOST)
    scene.live.seen(workers[2].key, DRAINING)
    assert list(scene.live.table.nodes) == [workers[0].key]
    assert list(scene.watches.running) == [workers[0].key]


@pytest.mark.parametrize("status", [None, DRAINING])
async def test_node_that_left_goes_with_its_record(
    scene: Scene, status: worker_pb2.NodeStatus | None
) -> None:
    """A record that vanishes takes its node along where that drains or never answered."""
    worker = listening("w1")
    scene.registry.put({worker.key: worker.value})
    if status:
        scene.live.seen(worker.key, status)
    scene.registry.delete(worker.key)
    assert not scene.live.table.nodes
    assert not scene.watches.running


async def test_new_registration_of_a_live_node_changes_nothing(scene: Scene) -> None:
    """A node that answers may register anew without losing a call."""
    worker = listening("w1")
    scene.registry.put({worker.key: worker.value})
    scene.live.seen(worker.key, READY)
    load = scene.live.table.nodes[worker.key].load
    worker.record.epoch = 7
    scene.registry.put({worker.key: worker.value})
    assert scene.node(worker)[0] == ""
    assert scene.live.table.nodes[worker.key].load is load


async def test_restarted_node_is_looked_at_anew(scene: Scene) -> None:
    """A new address, or a new epoch of a node that was lost, starts a new watch."""
    worker = listening("w1")
    scene.registry.put({worker.key: worker.value})
    scene.live.lost(worker.key, LOST)
    worker.record.epoch = 7
    scene.registry.put({worker.key: worker.value})
    assert scene.node(worker)[0] == UNSEEN
    scene.live.seen(worker.key, READY)
    worker.record.admin_address = "127.0.0.1:3"
    scene.registry.put({worker.key: worker.value})
    assert scene.node(worker)[0] == UNSEEN
    assert scene.watches.running[worker.key] == "127.0.0.1:3"


async def test_weight_override(scene: Scene) -> None:
    """An operator's weight holds before and after the node appears, until it is deleted."""
    worker = listening("w1", watched=False)
    scene.registry.put({"/braid/weights/w1": b"0"})
    scene.registry.put({worker.key: worker.value})
    assert scene.node(worker)[1] == 0
    scene.registry.put({"/braid/weights/w1": b"7\n"})
    assert scene.node(worker)[1] == 7
    scene.registry.delete("/braid/weights/w1")
    assert scene.node(worker)[1] == 100


async def test_weight_of_one_node_leaves_longer_names_alone(scene: Scene) -> None:
    """The weight of ``w1`` is not the weight of ``w10``."""
    one, ten = listening("w1", watched=False), listening("w10", watched=False)
    scene.registry.put({one.key: one.value, ten.key: ten.value})
    scene.registry.put({"/braid/weights/w1": b"0"})
    assert [scene.node(worker)[1] for worker in (one, ten)] == [0, 100]
    scene.registry.delete(one.key)
    assert list(scene.live.table.nodes) == [ten.key]


@pytest.mark.parametrize(
    ("key", "bad"),
    [
        ("/braid/policy", b'{"default": {"groups": [{"group": "a"}, {"group": "a"}]}}'),
        ("/braid/policy", b'{"a":1,}'),
        ("/braid/traffic/m", b'{"v1": "90"}'),
        ("/braid/traffic/m", b"{}"),
        ("/braid/groups/g", b'{"group": "g", "max_steps": 0}'),
        ("/braid/traffic/a/b", b'{"v1": 1}'),
        ("/braid/weights/w1", b"1001"),
        ("/braid/weights/w 1", b"1"),
        ("/braid/nodes/diffusion/w1", b"null"),
        ("/braid/nodes/other/w1", None),
        ("/braid/nodes/w1", b"{}"),
    ],
)
async def test_bad_value_is_refused_whole(scene: Scene, key: str, bad: bytes | None) -> None:
    """A value that cannot be used is listed, and changes nothing."""
    worker = listening("w1", watched=False)
    scene.registry.put({worker.key: worker.value, "/braid/traffic/m": b'{"v1": 1}'})
    before = scene.live.table
    scene.registry.put({key: worker.value if bad is None else bad})
    assert [value.key for value in scene.live.rejected] == [key]
    after = scene.live.table
    assert after.policy.message == before.policy.message
    assert (after.traffic, scene.node(worker)) == (before.traffic, ("", 100, False))


async def test_corrected_value_applies(scene: Scene) -> None:
    """A good value after a bad one is taken and clears the complaint; deletion as well."""
    scene.registry.put({"/braid/traffic/m": b"[]"})
    scene.registry.put({"/braid/traffic/m": b'{"v1": 1}\n'})
    assert not scene.live.rejected
    assert scene.live.table.traffic == {"m": {"v1": 1}}
    scene.registry.delete("/braid/traffic/m")
    assert not scene.live.table.traffic


async def test_policy_key_replaces_the_built_in_policy(scene: Scene) -> None:
    """The stored policy is in force while there is one."""
    scene.registry.put({"/braid/policy": b'{"default": {"groups": [{"group": "g"}]}}'})
    assert scene.live.table.policy.rules.default.route.groups == (("g", 1),)
    scene.registry.delete("/braid/policy")
    assert scene.live.table.policy.built_in


async def test_one_revision_is_one_table(scene: Scene) -> None:
    """Whatever one revision changed becomes visible in one assignment."""
    worker = listening("w1", watched=False)
    scene.registry.put(
        {worker.key: worker.value, "/braid/weights/w1": b"5", "/braid/traffic/m": b'{"v1": 1}'}
    )
    table = scene.live.table
    assert (table.revision, table.nodes[worker.key].weight, len(table.traffic)) == (1, 5, 1)
