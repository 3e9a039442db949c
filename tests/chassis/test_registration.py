"""A record that its owner keeps in etcd; what hands and rivals do to it."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from structlog.testing import capture_logs
from structlog.typing import EventDict

from services.chassis.entries import Entry
from services.chassis.registration import KeyTaken, Registration
from services.chassis.registry import Registry
from services.cli.etcd_process import EtcdProcess
from tests.etcd import etcdctl
from tests.eventually import eventually
from tests.registering import TTL_S, leased_entry, record, registering

KEY = "/braid/nodes/g/w1"
ONE_BEAT_S = 8.0
"""A third of the lease's life, and much time for a machine that has other work."""


async def put_back(registry: Registry, old: Entry) -> Entry:
    """The record once it is there again with another epoch."""

    async def check() -> Entry | None:
        entry = await registry.get(KEY)
        return entry if entry and entry.lease and entry.value != old.value else None

    entry = await eventually(check, ONE_BEAT_S)
    assert entry
    return entry


def causes_of_loss(lines: list[EventDict]) -> list[str]:
    """What the warnings about the record gave as the cause."""
    return [line["cause"] for line in lines if line["event"] == "registration_lost"]


async def test_registers_under_a_lease(registry: Registry) -> None:
    """The record lies under a lease of the given life."""
    async with registering(registry, KEY):
        entry = await leased_entry(registry, KEY)
        assert (await registry.time_to_live(entry.lease)).granted_s == TTL_S


async def test_withdraw(registry: Registry) -> None:
    """Withdrawing takes the record away at once, ends run, and can be done again."""
    async with registering(registry, KEY) as registration:
        await registration.withdraw()
        assert await registry.get(KEY) is None
        await registration.withdraw()


async def test_withdraw_before_run(registry: Registry) -> None:
    """A registration that was withdrawn early never appears."""
    registration = Registration(registry, KEY, record, TTL_S)
    await registration.withdraw()
    await asyncio.wait_for(registration.run(), 5)
    assert await registry.get(KEY) is None


async def test_cancelled(registry: Registry) -> None:
    """Cancelling run takes the record away as well."""
    async with registering(registry, KEY):
        pass
    assert await registry.get(KEY) is None


async def test_key_deleted_by_hand(registry: Registry, etcd: EtcdProcess) -> None:
    """A deleted key is back within a heartbeat under the same lease, with one warning."""
    with capture_logs() as lines:
        async with registering(registry, KEY):
            old = await leased_entry(registry, KEY)
            etcdctl(etcd, "del", KEY)
            new = await put_back(registry, old)
            assert new.lease == old.lease
    assert causes_of_loss(lines) == ["key_deleted"]


async def test_key_overwritten_by_hand(registry: Registry, etcd: EtcdProcess) -> None:
    """A plain put, which detaches the lease, is undone within a heartbeat, with one warning."""
    with capture_logs() as lines:
        async with registering(registry, KEY):
            old = await leased_entry(registry, KEY)
            etcdctl(etcd, "put", KEY, "by hand")
            assert (await put_back(registry, old)).lease == old.lease
    assert causes_of_loss(lines) == ["key_overwritten"]


async def test_overwritten_just_before_the_end(registry: Registry) -> None:
    """A record that a plain put detached does not stay behind when its owner leaves."""
    async with registering(registry, KEY, ttl_s=30) as registration:
        await registry.put(KEY, b"by hand")
        await registration.withdraw()
    assert await registry.get(KEY) is None


async def test_lease_revoked(registry: Registry, etcd: EtcdProcess) -> None:
    """A revoked lease is replaced within a heartbeat: same key, new epoch, one warning."""
    with capture_logs() as lines:
        async with registering(registry, KEY):
            old = await leased_entry(registry, KEY)
            etcdctl(etcd, "lease", "revoke", f"{old.lease:x}")
            new = await put_back(registry, old)
            assert new.lease != old.lease
            assert new.value > old.value
    assert causes_of_loss(lines) == ["lease_lost"]


async def test_second_live_owner_is_refused(registry: Registry) -> None:
    """A process whose id is in use by a live one refuses to start, and harms nothing."""
    async with registering(registry, KEY, ttl_s=4):
        owner = await leased_entry(registry, KEY)
        second = Registration(registry, KEY, record, 4)
        with pytest.raises(KeyTaken, match=KEY):
            await asyncio.wait_for(second.run(), 10)
        with pytest.raises(KeyTaken):
            await second.registered()
        assert await registry.get(KEY) == owner


async def test_dead_owner_is_waited_out(registry: Registry) -> None:
    """A process that starts again after a crash has its key once its old lease is over."""
    await registry.put(KEY, b"before the crash", lease=await registry.grant(TTL_S))
    async with registering(registry, KEY):
        assert (await leased_entry(registry, KEY)).value.startswith(b'{"epoch"')


async def test_leftover_without_a_lease(registry: Registry) -> None:
    """A record that no lease holds belongs to nobody and is replaced at once."""
    await registry.put(KEY, b"left by hand")
    started = time.monotonic()
    async with registering(registry, KEY):
        assert time.monotonic() - started < TTL_S


async def test_later_of_two_owners_stays(registry: Registry) -> None:
    """Two live owners, as after a split, do not take the key from each other for ever."""
    async with registering(registry, KEY):
        rival = await registry.grant(60)
        await registry.put(KEY, b"rival", lease=rival)
        first = Entry(KEY, b"rival", 0, rival)
        await put_back(registry, first)
        with capture_logs() as lines:
            await registry.put(KEY, b"rival", lease=rival)
            await eventually(
                lambda: [line for line in lines if line["event"] == "registration_contested"]
            )
            await asyncio.sleep(0.75 * TTL_S)
        assert [line["event"] for line in lines].count("registration_contested") == 1
        entry = await registry.get(KEY)
        assert entry
        assert entry.lease == rival
        await registry.revoke(rival)
        await put_back(registry, first)


async def test_successor_is_left_alone(registry: Registry) -> None:
    """An owner that lost its lease, and finds the key in other hands, lets them have it."""
    async with registering(registry, KEY):
        old = await leased_entry(registry, KEY)
        successor = await registry.grant(60)
        await registry.revoke(old.lease)
        revision = await registry.put(KEY, b"successor", lease=successor)
        await asyncio.sleep(0.75 * TTL_S)
        assert await registry.get(KEY) == Entry(KEY, b"successor", revision, successor)
        await registry.revoke(successor)
        await put_back(registry, old)


async def test_two_start_at_once(registry: Registry) -> None:
    """Of two processes that start together with one id, one registers and one is refused."""
    both = [Registration(registry, KEY, record, 4) for _ in range(2)]
    runs = [asyncio.create_task(registration.run()) for registration in both]
    done, _ = await asyncio.wait(runs, return_when=asyncio.FIRST_COMPLETED, timeout=15)
    assert [type(run.exception()) for run in done] == [KeyTaken]
    assert await leased_entry(registry, KEY)
    for registration in both:
        await registration.withdraw()


async def test_similar_ids_do_not_meet(registry: Registry) -> None:
    """w1 leaves and w10 stays."""
    async with registering(registry, KEY + "0"):
        async with registering(registry, KEY):
            pass
        assert set((await registry.list("/braid/nodes/g/")).entries) == {KEY + "0"}


async def test_busy_process_keeps_its_lease(registry: Registry) -> None:
    """With the event loop and another thread computing for two lives, nothing is lost.

    The entry is the very same afterwards: it neither vanished nor was put again.
    """
    ttl_s = 4
    async with registering(registry, KEY, ttl_s):
        before = await leased_entry(registry, KEY)
        spinner = threading.Thread(target=compute, args=(2 * ttl_s,))
        spinner.start()
        compute(2 * ttl_s)
        await asyncio.to_thread(spinner.join)
        assert await registry.get(KEY) == before


def compute(seconds: float) -> None:
    """Holds its thread without ever waiting."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(1000))


async def test_record_that_cannot_be_made(registry: Registry) -> None:
    """An error in making the record ends run with that error rather than being retried."""

    def broken(_epoch: int) -> bytes:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await asyncio.wait_for(Registration(registry, KEY, broken, TTL_S).run(), 5)
