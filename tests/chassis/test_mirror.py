"""The mirror against a real etcd that behaves; its faults are in tests/faults."""

from __future__ import annotations

import asyncio
from pathlib import Path

from structlog.testing import capture_logs

from services.chassis.mirror import Mirror
from services.chassis.mirror_state import Changes, MirrorState
from services.chassis.registry import Registry
from services.chassis.transaction import Put
from tests.etcd import settings_for
from tests.eventually import eventually
from tests.ports import free_port
from tests.registering import mirroring


async def test_starts_with_what_is_there(registry: Registry) -> None:
    """The first state holds every key under the prefix and no other."""
    await registry.put("/t/a", b"1")
    await registry.put("/tt/b", b"1")
    async with mirroring(Mirror(registry, "/t/")) as mirror:
        assert set(mirror.state.entries) == {"/t/a"}
        assert mirror.state.connected
        assert not mirror.state.from_disk


async def test_one_call_for_one_revision(registry: Registry) -> None:
    """A subscriber is told of all keys of one revision at once, deletions with what was there."""
    told: list[Changes] = []
    async with mirroring(Mirror(registry, "/t/")) as mirror:
        mirror.subscribe(lambda _state, changes: told.append(changes))
        assert told.pop().relisted
        await registry.transact((), [Put(f"/t/{name}", b"1") for name in "abcde"])
        await eventually(lambda: told)
        assert len(told.pop().put) == 5
        await registry.delete("/t/a")
        await eventually(lambda: told)
        assert told[0].deleted == ("/t/a",)
        assert told[0].previous["/t/a"].value == b"1"


async def test_a_revision_can_be_waited_for(registry: Registry) -> None:
    """Once a revision is reached its keys are there and subscribers know them."""
    told: list[str] = []
    async with mirroring(Mirror(registry, "/t/")) as mirror:
        mirror.subscribe(lambda _state, changes: told.extend(entry.key for entry in changes.put))
        for name in "abc":
            revision = await registry.put(f"/t/{name}", b"1")
            await mirror.reached(revision)
            assert told[-1] == f"/t/{name}"


async def test_keeps_fresh_without_changes(registry: Registry) -> None:
    """While etcd answers, the age of the state stays about a second, whatever happens in it."""
    async with mirroring(Mirror(registry, "/quiet/")) as mirror:
        first = mirror.state.fresh_at
        await eventually(lambda: mirror.state.fresh_at > first + 0.5)
        assert mirror.state.connected


async def test_subscriber_may_start_another_mirror(registry: Registry) -> None:
    """From inside a callback another prefix can be followed, and nothing stands still."""
    async with asyncio.TaskGroup() as tasks:
        inner: list[Mirror] = []
        works: list[asyncio.Task[None]] = []

        def follow_workers(_state: MirrorState, changes: Changes) -> None:
            if any(entry.key == "/models/new" for entry in changes.put):
                inner.append(Mirror(registry, "/workers/new/"))
                works.append(tasks.create_task(inner[0].run()))

        await registry.put("/models/old", b"x")
        async with mirroring(Mirror(registry, "/models/")) as outer:
            outer.subscribe(follow_workers)
            await registry.put("/models/new", b"x")
            await eventually(lambda: inner)
            await registry.put("/workers/new/w1", b"x")
            await registry.delete("/models/old")
            await eventually(lambda: set(inner[0].state.entries) == {"/workers/new/w1"})
            await eventually(lambda: set(outer.state.entries) == {"/models/new"})
        for work in works:
            work.cancel()


async def test_subscriber_that_fails(registry: Registry) -> None:
    """A subscriber's error is logged; the others are told, and the next revision comes."""
    told: list[int] = []

    def broken(_state: MirrorState, _changes: Changes) -> None:
        raise KeyError("bug")

    with capture_logs() as lines:
        async with mirroring(Mirror(registry, "/t/")) as mirror:
            mirror.subscribe(broken)
            mirror.subscribe(lambda state, _changes: told.append(state.revision))
            await registry.put("/t/a", b"1")
            revision = await registry.put("/t/a", b"2")
            await eventually(lambda: told[-1] == revision)
    assert {line["event"] for line in lines} >= {"mirror_subscriber_failed"}


async def test_etcd_down_at_start(tmp_path: Path, registry: Registry) -> None:
    """With etcd down the last saved keys serve; without any there is no state and one warning."""
    path = tmp_path / "registry.json"
    await registry.put("/t/a", b"1")
    async with mirroring(Mirror(registry, "/t/", path)):
        await eventually(path.exists)
    async with Registry(settings_for(f"127.0.0.1:{free_port()}")) as nowhere:
        async with mirroring(Mirror(nowhere, "/t/", path)) as mirror:
            assert set(mirror.state.entries) == {"/t/a"}
            assert mirror.state.from_disk
            assert not mirror.state.connected
        with capture_logs() as lines:
            work = asyncio.create_task(Mirror(nowhere, "/t/").run())
            await asyncio.sleep(1.5)
            work.cancel()
    assert [line["event"] for line in lines] == ["mirror_interrupted"]


async def test_last_changes_reach_the_disk(tmp_path: Path, registry: Registry) -> None:
    """What arrives just before the end is saved when the mirror ends."""
    path = tmp_path / "registry.json"
    async with mirroring(Mirror(registry, "/t/", path)) as mirror:
        await eventually(path.exists)
        revision = await registry.put("/t/late", b"1")
        await eventually(lambda: mirror.state.revision == revision)
    async with (
        Registry(settings_for(f"127.0.0.1:{free_port()}")) as nowhere,
        mirroring(Mirror(nowhere, "/t/", path)) as mirror,
    ):
        assert set(mirror.state.entries) == {"/t/late"}
