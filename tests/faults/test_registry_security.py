"""etcd behind TLS and behind a login."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path

import pytest

from services.chassis.errors import RegistryUnavailable
from services.chassis.mirror import Mirror
from services.chassis.registry import Registry
from services.chassis.settings import EtcdSettings
from services.cli.etcd_process import EtcdProcess
from tests.certificates import Certificate, certificate
from tests.etcd import etcdctl, new_etcd, settings_for
from tests.eventually import eventually
from tests.ports import free_port
from tests.registering import TTL_S, leased_entry, mirroring, registering

PREFIX = "/braid/nodes/"
KEY = PREFIX + "g/w1"
TOKEN_TTL_S = 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tls")


@pytest.fixture(scope="module")
def authority(folder: Path) -> Certificate:
    return certificate(folder, "authority")


@pytest.fixture(scope="module")
def tls_etcd(folder: Path, authority: Certificate) -> Iterator[EtcdProcess]:
    """An etcd that shows a certificate and asks its clients for one."""
    server = certificate(folder, "server", authority)
    metrics = f"http://127.0.0.1:{free_port()}"
    client = f"https://127.0.0.1:{free_port()}"
    etcd = new_etcd(
        folder,
        f"--cert-file={server.cert_path}",
        f"--key-file={server.key_path}",
        f"--trusted-ca-file={authority.cert_path}",
        "--client-cert-auth",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-metrics-urls={metrics}",
        health_url=metrics,
    )
    etcd.client_port = int(client.rpartition(":")[2])
    etcd.start()
    yield etcd
    etcd.kill()


async def test_tls_with_client_certificate(
    tls_etcd: EtcdProcess, folder: Path, authority: Certificate
) -> None:
    """Mirror and registration work over TLS with a client certificate."""
    client = certificate(folder, "client", authority)
    settings = settings_for(
        tls_etcd.endpoint,
        etcd_ca=authority.cert_path,
        etcd_cert=client.cert_path,
        etcd_key=client.key_path,
    )
    async with (
        Registry(settings) as registry,
        mirroring(Mirror(registry, PREFIX)) as mirror,
        registering(registry, KEY),
    ):
        await eventually(lambda: set(mirror.state.entries) == {KEY})


async def test_tls_without_client_certificate(
    tls_etcd: EtcdProcess, authority: Certificate
) -> None:
    """An etcd that asks for a certificate does not answer a client without one."""
    settings = settings_for(f"https://{tls_etcd.endpoint}", etcd_ca=authority.cert_path)
    async with Registry(settings) as registry:
        with pytest.raises(RegistryUnavailable):
            await registry.get(KEY)


async def test_wrong_authority(tls_etcd: EtcdProcess, folder: Path) -> None:
    """A server whose certificate our authority did not sign is not talked to."""
    stranger = certificate(folder, "stranger")
    async with Registry(settings_for(tls_etcd.endpoint, etcd_ca=stranger.cert_path)) as registry:
        with pytest.raises(RegistryUnavailable):
            await registry.get(KEY)


async def test_plain_text_to_tls(tls_etcd: EtcdProcess) -> None:
    """Without TLS the call fails within its time instead of hanging."""
    async with Registry(settings_for(tls_etcd.endpoint), timeout_s=2) as registry:
        with pytest.raises(RegistryUnavailable):
            await registry.get(KEY)


@pytest.fixture(scope="module")
def login_etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdProcess]:
    """An etcd with users, whose tokens last TOKEN_TTL_S after their latest use."""
    etcd = new_etcd(
        tmp_path_factory.mktemp("login"), f"--auth-token-ttl={TOKEN_TTL_S}", "--bcrypt-cost=4"
    )
    etcd.start()
    etcdctl(etcd, "user", "add", "root:secret")
    etcdctl(etcd, "role", "add", "braid")
    etcdctl(etcd, "role", "grant-permission", "braid", "--prefix=true", "readwrite", "/braid/")
    etcdctl(etcd, "user", "add", "braid:secret")
    etcdctl(etcd, "user", "grant-role", "braid", "braid")
    etcdctl(etcd, "user", "grant-role", "root", "root")
    etcdctl(etcd, "auth", "enable")
    yield etcd
    etcd.kill()


def login(etcd: EtcdProcess, password: str = "secret") -> EtcdSettings:
    return settings_for(etcd.endpoint, etcd_user="braid", etcd_password=password)


@pytest.fixture
async def logged_in(login_etcd: EtcdProcess) -> AsyncIterator[Registry]:
    async with Registry(login(login_etcd)) as registry:
        yield registry


async def test_expired_token(logged_in: Registry) -> None:
    """A call after the token's end logs in again by itself, many at once as well as one."""
    await logged_in.put(KEY, b"1")
    await asyncio.sleep(2.2 * TOKEN_TTL_S)
    entries = await asyncio.gather(*(logged_in.get(KEY) for _ in range(5)))
    assert all(entries)


async def test_everything_outlives_its_token(login_etcd: EtcdProcess, logged_in: Registry) -> None:
    """Heartbeats, watch and relist go on after their tokens expired or were forgotten."""
    await logged_in.delete(KEY)
    async with (
        mirroring(Mirror(logged_in, PREFIX)) as mirror,
        registering(logged_in, KEY, ttl_s=3 * TTL_S),
    ):
        old = await leased_entry(logged_in, KEY)
        await asyncio.sleep(2.2 * TOKEN_TTL_S)
        await logged_in.put(PREFIX + "g/other", b"1")
        await eventually(lambda: set(mirror.state.entries) == {KEY, PREFIX + "g/other"})
        login_etcd.kill()
        login_etcd.start()
        revision = await eventually(lambda: put_again(logged_in))
        await eventually(lambda: mirror.state.revision == revision)
        assert await leased_entry(logged_in, KEY) == old


async def put_again(registry: Registry) -> int:
    """The revision of a put, once etcd answers."""
    try:
        return await registry.put(PREFIX + "g/other", b"2")
    except RegistryUnavailable as error:
        raise AssertionError(error.message) from error


async def test_wrong_password(login_etcd: EtcdProcess) -> None:
    """A wrong password is told as such, without the password."""
    async with Registry(login(login_etcd, "no-secret")) as registry:
        with pytest.raises(RegistryUnavailable, match="invalid user ID or password") as caught:
            await registry.get(KEY)
    assert "no-secret" not in str(caught.value)


async def test_no_login(login_etcd: EtcdProcess) -> None:
    """An etcd that wants a login and gets none is an outage with a cause, not an empty list."""
    async with Registry(settings_for(login_etcd.endpoint)) as registry:
        with pytest.raises(RegistryUnavailable, match="user name is empty"):
            await registry.list(PREFIX)


async def test_forbidden_prefix(logged_in: Registry) -> None:
    """A prefix that the user may not read fails list and watch with the cause."""
    with pytest.raises(RegistryUnavailable, match="permission denied"):
        async with aclosing(logged_in.follow("/secret/")) as news:
            await anext(news)
