"""The client of etcd against a real one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from services.chassis.entries import Batch, Listing, News, Pulse
from services.chassis.errors import RegistryRefused, RegistryUnavailable
from services.chassis.registry import Registry
from services.chassis.transaction import Delete, Put, Unchanged
from services.cli.etcd_process import EtcdProcess
from tests.etcd import Link, settings_for
from tests.ports import free_port


async def test_put_and_get(registry: Registry) -> None:
    """A value comes back as it was put, with the revision of its write."""
    revision = await registry.put("/t/a", b"\x00one")
    entry = await registry.get("/t/a")
    assert entry
    assert (entry.value, entry.mod_revision, entry.lease) == (b"\x00one", revision, 0)


async def test_absent_key(registry: Registry) -> None:
    """An absent key reads as None, and deleting it is no fault."""
    assert await registry.get("/t/none") is None
    await registry.delete("/t/none")


async def test_prefix_ends_at_its_slash(registry: Registry) -> None:
    """Models llada and llada2, workers w1 and w10: one name never finds the longer one."""
    for key in ("/m/llada/w1", "/m/llada/w10", "/m/llada2/w1", "/m/llada"):
        await registry.put(key, b"x")
    assert set((await registry.list("/m/llada/")).entries) == {"/m/llada/w1", "/m/llada/w10"}
    await registry.delete("/m/llada/w1")
    assert set((await registry.list("/m/llada/")).entries) == {"/m/llada/w10"}
    with pytest.raises(ValueError, match="slash"):
        await registry.list("/m/llada")


async def test_transaction_is_whole(registry: Registry) -> None:
    """Puts and deletes of one transaction happen under one revision."""
    await registry.put("/t/old", b"x")
    result = await registry.transact((), (Put("/t/a", b"1"), Put("/t/b", b"2"), Delete("/t/old")))
    listing = await registry.list("/t/")
    assert result.succeeded
    assert {entry.mod_revision for entry in listing.entries.values()} == {result.revision}
    assert set(listing.entries) == {"/t/a", "/t/b"}


async def test_transaction_with_a_stale_condition_writes_nothing(registry: Registry) -> None:
    """A writer that saw an older revision, or no key where there is one, changes nothing."""
    first = await registry.put("/t/a", b"1")
    await registry.put("/t/a", b"2")
    for seen in (first, 0):
        result = await registry.transact((Unchanged("/t/a", seen),), (Put("/t/a", b"3"),))
        assert not result.succeeded
    entry = await registry.get("/t/a")
    assert entry
    assert entry.value == b"2"


async def test_create_only_once(registry: Registry) -> None:
    """Revision 0 as the condition stands for an absent key."""
    create = ((Unchanged("/t/new", 0),), (Put("/t/new", b"1"),))
    assert (await registry.transact(*create)).succeeded
    assert not (await registry.transact(*create)).succeeded


async def test_too_much_for_one_write(registry: Registry) -> None:
    """A value of 2 MB or a transaction of 200 keys is refused, not taken for an outage."""
    with pytest.raises(RegistryRefused, match="large"):
        await registry.put("/t/big", b"x" * 2_000_000)
    with pytest.raises(RegistryRefused, match="too many operations"):
        await registry.transact((), [Put(f"/t/{number}", b"x") for number in range(200)])
    assert not (await registry.list("/t/")).entries


async def test_lease_carries_its_key(registry: Registry) -> None:
    """A key under a lease goes with it, renewals are told its life, and the end is told too."""
    lease = await registry.grant(5)
    await registry.put("/t/leased", b"x", lease=lease)
    assert await registry.keep_alive(lease) == 5
    life = await registry.time_to_live(lease)
    assert 3 <= life.left_s <= 5
    assert life.granted_s == 5
    await registry.revoke(lease)
    assert await registry.get("/t/leased") is None
    assert await registry.keep_alive(lease) == 0
    assert (await registry.time_to_live(lease)).left_s < 0
    await registry.revoke(lease)


async def next_change(news: AsyncIterator[News]) -> Listing | Batch:
    while True:
        item = await asyncio.wait_for(anext(news), 5)
        if not isinstance(item, Pulse):
            return item


async def test_follow(registry: Registry) -> None:
    """The list comes first, then each later revision as a whole, then deletions."""
    await registry.put("/t/a", b"1")
    async with aclosing(registry.follow("/t/")) as news:
        listing = await next_change(news)
        assert isinstance(listing, Listing)
        assert set(listing.entries) == {"/t/a"}
        puts = [Put(f"/t/{name}", b"2") for name in "bcdef"]
        revision = (await registry.transact((), puts)).revision
        batch = await next_change(news)
        assert isinstance(batch, Batch)
        assert batch.revision == revision
        assert {entry.key for entry in batch.put} == {put.key for put in puts}
        revision = await registry.delete("/t/a")
        assert await next_change(news) == Batch(revision, deleted=("/t/a",))


async def test_follow_shows_life(registry: Registry) -> None:
    """A prefix where nothing happens still gives a pulse every second or so."""
    async with aclosing(registry.follow("/quiet/")) as news:
        kinds = [type(await asyncio.wait_for(anext(news), 5)) for _ in range(4)]
    assert kinds == [Listing, Pulse, Pulse, Pulse]


async def test_nobody_listens() -> None:
    """Where no etcd is, calls fail within their time and name the endpoint."""
    endpoint = f"127.0.0.1:{free_port()}"
    async with Registry(settings_for(endpoint), timeout_s=2) as registry:
        started = time.monotonic()
        with pytest.raises(RegistryUnavailable, match=endpoint):
            await registry.get("/t/a")
        with pytest.raises(RegistryUnavailable):
            async with aclosing(registry.follow("/t/")) as news:
                await anext(news)
        assert time.monotonic() - started < 4


async def test_frozen_etcd_and_a_new_connection(etcd: EtcdProcess) -> None:
    """A call on a dead connection times out, and the next one goes over a new connection."""
    async with (
        Link(etcd.client_port).listening() as link,
        Registry(settings_for(link.address), timeout_s=1.0) as registry,
    ):
        await registry.put("/t/a", b"1")
        link.silence()
        with pytest.raises(RegistryUnavailable, match="DEADLINE"):
            await registry.get("/t/a")
        assert await registry.get("/t/a")
        assert link.accepted == 2


async def test_calls_in_flight_outlive_a_replaced_connection(etcd: EtcdProcess) -> None:
    """Many calls that time out together replace the connection once."""
    async with (
        Link(etcd.client_port).listening() as link,
        Registry(settings_for(link.address), timeout_s=1.0) as registry,
    ):
        await registry.get("/t/a")
        link.silence()
        calls = (registry.get("/t/a") for _ in range(10))
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {RegistryUnavailable}
        await registry.get("/t/a")
        assert link.accepted == 2


async def test_second_endpoint(etcd: EtcdProcess) -> None:
    """With one of two endpoints down every kind of call goes to the other one, writes too."""
    settings = settings_for(f"127.0.0.1:{free_port()}", etcd.endpoint)
    async with Registry(settings) as registry:
        await registry.put("/t/a", b"1")
    async with Registry(settings) as registry:
        with pytest.raises(RegistryUnavailable):
            async with aclosing(registry.follow("/t/")) as news:
                await anext(news)
        async with aclosing(registry.follow("/t/")) as news:
            assert isinstance(await anext(news), Listing)


async def test_no_proxy_of_the_environment(
    etcd: EtcdProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy named in the environment is not asked for the way to etcd."""
    for name in ("http_proxy", "https_proxy", "grpc_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    monkeypatch.delenv("no_proxy", raising=False)
    async with Registry(settings_for(etcd.endpoint)) as registry:
        await registry.put("/t/a", b"1")


async def test_not_entered(etcd: EtcdProcess) -> None:
    """A registry that was not entered says so."""
    with pytest.raises(RuntimeError, match="enter"):
        await Registry(settings_for(etcd.endpoint)).get("/t/a")
