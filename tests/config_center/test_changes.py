"""The list of changes, over real sockets and a real etcd."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import grpc
import pytest
from prometheus_client import CollectorRegistry

from braid.config.v1 import config_pb2
from services.chassis import keys
from services.chassis.entries import Entry
from services.chassis.registry import Registry
from services.chassis.transaction import Put
from services.config_center import history
from services.config_center.change import BY_HAND, Author, change, key_change, shown
from services.config_center.hand_edits import HandEdits
from services.config_center.history import History
from services.config_center.store import Store, Write
from services.router.builtin_policy import builtin_policy
from tests.config_center.test_servicer import refused
from tests.eventually import eventually

TRAFFIC = keys.traffic_key("demo")


@asynccontextmanager
async def following(registry: Registry, centers: int = 1) -> AsyncIterator[None]:
    """So many config centers that look for edits by hand."""
    async with asyncio.TaskGroup() as tasks:
        works = [
            tasks.create_task(HandEdits(registry, CollectorRegistry()).run())
            for _ in range(centers)
        ]
        yield
        for work in works:
            work.cancel()


async def changes_of(registry: Registry) -> list[config_pb2.Change]:
    return list((await History(registry).list(0, 1000, "")).changes)


async def test_change_names_author_and_both_values(config_center: Any, registry: Registry) -> None:
    """A write is listed under its own revision with who, why, before and after."""
    group = config_pb2.Group(group="diffusion", max_steps=8)
    await config_center.PutGroup(config_pb2.PutGroupRequest(group=group))
    group.max_steps = 4
    put = await config_center.PutGroup(config_pb2.PutGroupRequest(group=group, reason="slow"))
    listed = await config_center.ListChanges(config_pb2.ListChangesRequest())
    newest = listed.changes[-1]
    assert (newest.revision, newest.who, newest.reason) == (put.revision, "anonymous", "slow")
    assert json.loads(newest.keys[0].before)["max_steps"] == 8
    assert json.loads(newest.keys[0].after)["max_steps"] == 4
    assert await registry.get(keys.change_key(put.revision))


async def test_refused_change_is_not_listed(config_center: Any, registry: Registry) -> None:
    """A write that lost its compare-and-swap leaves no record, and tells the present value."""
    policy = builtin_policy()
    await config_center.PutPolicy(config_pb2.PutPolicyRequest(policy=policy))
    async with refused(grpc.StatusCode.ABORTED, "REVISION_CONFLICT"):
        await config_center.PutPolicy(
            config_pb2.PutPolicyRequest(policy=policy, expected_revision=1)
        )
    assert len(await changes_of(registry)) == 1


async def test_several_keys_are_one_change(registry: Registry) -> None:
    """A change of several keys has one revision and one record, or is not made at all."""
    store = Store(registry)
    writes = [Write(keys.traffic_key(model), b'{"v1": 1}', 0) for model in ("a", "b")]
    revision = await store.commit(writes, Author("ann", ""))
    (only,) = await changes_of(registry)
    assert (only.revision, [part.key for part in only.keys]) == (
        revision,
        [keys.traffic_key("a"), keys.traffic_key("b")],
    )
    with pytest.raises(Exception, match="read it again"):
        await store.commit([Write(keys.traffic_key("c"), b"{}"), writes[0]], Author())
    assert await registry.get(keys.traffic_key("c")) is None


@pytest.mark.parametrize(
    ("value", "rejected"), [(b'{"v1": 95}\n', ""), (b'{"v1": 95,}', "is not JSON")]
)
async def test_hand_edit_is_recorded_once(registry: Registry, value: bytes, rejected: str) -> None:
    """Three config centers record an edit once, under its revision, a bad one with the reason."""
    async with following(registry, centers=3):
        revision = await registry.put(TRAFFIC, value)
        (only,) = await eventually(lambda: changes_of(registry))
        await registry.put(keys.traffic_key("other"), b'{"v1": 1}')
        both = await eventually(lambda: _at_least(registry, 2))
    assert len(both) == 2
    assert (only.revision, only.who) == (revision, BY_HAND)
    assert only.keys[0].after == value.decode()
    assert only.keys[0].rejected.startswith(rejected) if rejected else not only.keys[0].rejected


async def _at_least(registry: Registry, count: int) -> list[config_pb2.Change]:
    found = await changes_of(registry)
    return found if len(found) >= count else []


async def test_deletion_by_hand_is_recorded(registry: Registry) -> None:
    """A key deleted with etcdctl shows with what it held."""
    await registry.put(TRAFFIC, b'{"v1": 1}')
    async with following(registry):
        await eventually(lambda: changes_of(registry))
        await registry.delete(TRAFFIC)
        _, deleted = await eventually(lambda: _at_least(registry, 2))
    assert (deleted.keys[0].before, deleted.keys[0].after) == ('{"v1": 1}', "")


async def test_edit_made_while_nobody_looked_is_found(registry: Registry) -> None:
    """A config center that starts later records what has no record, and nothing twice."""
    await Store(registry).commit([Write(TRAFFIC, b'{"v1": 1}')], Author("ann", ""))
    revision = await registry.put(keys.POLICY, b"{}")
    async with following(registry, centers=2):
        _, found = await eventually(lambda: _at_least(registry, 2))
    assert (found.revision, found.who) == (revision, BY_HAND)
    assert found.keys[0].rejected


async def test_record_of_a_killed_writer_is_settled(registry: Registry) -> None:
    """A writer that dies behind its transaction leaves a record that others complete."""
    record = change(Author("ann", "why"), [key_change(TRAFFIC, None, b'{"v1": 1}')])
    done = await registry.transact((), (Put(TRAFFIC, b'{"v1": 1}'), history.pending(record)))
    async with following(registry, centers=2):
        await eventually(lambda: registry.get(keys.change_key(done.revision)))
    (only,) = await changes_of(registry)
    assert (only.revision, only.who) == (done.revision, "ann")
    assert not (await registry.list(history.PENDING)).entries


async def test_watch_goes_on_where_the_list_ended(config_center: Any) -> None:
    """WatchChanges sends what came after a revision, then each new change, once."""
    put = [await _put_group(config_center, steps) for steps in (1, 2)]
    request = config_pb2.WatchChangesRequest(after_revision=put[0])
    async with AsyncExitStack() as stack:
        call = config_center.WatchChanges(request)
        stack.callback(call.cancel)
        seen = [(await call.read()).change.revision]
        put.append(await _put_group(config_center, 3))
        seen.append((await call.read()).change.revision)
    assert seen == put[1:]


async def _put_group(center: Any, steps: int) -> int:
    group = config_pb2.Group(group="diffusion", max_steps=steps)
    return int((await center.PutGroup(config_pb2.PutGroupRequest(group=group))).revision)


def test_history_is_bounded() -> None:
    """The oldest records beyond the bound go; pending ones and other keys stay."""
    entries = {key: Entry(key, b"{}", 1) for key in map(keys.change_key, (9, 10, 11))}
    entries |= {key: Entry(key, b"{}", 1) for key in (history.PENDING + "x", keys.POLICY)}
    assert history.surplus(entries, kept=2) == [keys.change_key(9)]


def test_secrets_are_left_out() -> None:
    """A caller's record is shown without hash and salt, and not at all where it is broken."""
    key = keys.caller_key("editor")
    record = {"caller_id": "editor", "keys": [{"key_id": "k", "salt": "AAA", "hash": "BBB"}]}
    text = shown(key, json.dumps(record).encode())
    assert json.loads(text) == {"caller_id": "editor", "keys": [{"key_id": "k"}]}
    assert "BBB" not in shown(key, b'{"hash": "BBB",}')


async def test_list_is_bounded(config_center: Any) -> None:
    """More than the bound cannot be asked for."""
    async with refused(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST"):
        await config_center.ListChanges(config_pb2.ListChangesRequest(limit=1001))


async def test_callers_keys_are_not_in_the_list(config_center: Any, registry: Registry) -> None:
    """A caller that is created shows as a change, its key's hash and salt do not."""
    caller = config_pb2.Caller(caller_id="editor")
    await config_center.PutCaller(config_pb2.PutCallerRequest(caller=caller, new_key=True))
    stored = await registry.get(keys.caller_key("editor"))
    assert stored
    (only,) = await changes_of(registry)
    (key,) = json.loads(stored.value)["keys"]
    assert key["hash"] not in only.keys[0].after
    assert key["salt"] not in only.keys[0].after
    assert json.loads(only.keys[0].after)["caller_id"] == "editor"
