"""TLS between a server and its clients, over real sockets and with real files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from services.chassis.channel import open_channel
from services.chassis.process import StartFailure
from services.chassis.security.settings import TlsSettings
from services.chassis.security.tls import Dial, Tls
from services.chassis.server import RpcServer
from services.chassis.settings import SettingError
from services.cli.failure import describe
from tests.certificates import Certificate, certificate

CHECK = health_pb2.HealthCheckRequest()


@pytest.fixture
def authority(tmp_path: Path) -> Certificate:
    return certificate(tmp_path, "authority")


@pytest.fixture
def shown(tmp_path: Path, authority: Certificate) -> Certificate:
    """The certificate that the server shows."""
    return certificate(tmp_path, "server", authority)


def tls(authority: Certificate, shown: Certificate | None = None, *, require: bool = False) -> Tls:
    """The TLS of a process with these files."""
    return Tls(
        TlsSettings(
            tls_authority=authority.cert_path,
            tls_certificate=shown.cert_path if shown else None,
            tls_key=shown.key_path if shown else None,
            tls_require_client_certificate=require,
        )
    )


@asynccontextmanager
async def serving(of: Tls) -> AsyncIterator[str]:
    """Address of a server with this TLS."""
    server = RpcServer("127.0.0.1:0", [], credentials=of.server_credentials())
    port = await server.start(serving=True)
    yield f"127.0.0.1:{port}"
    await server.stop(0)


async def ask(dial: Dial, address: str) -> None:
    """One call over a connection of its own."""
    async with dial(address) as channel:
        await stub(channel).Check(CHECK, timeout=5)


async def refusal(dial: Dial, address: str) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await ask(dial, address)
    return caught.value


def stub(channel: grpc.aio.Channel) -> Any:
    return health_pb2_grpc.HealthStub(channel)


async def test_mutual_tls_is_served(
    tmp_path: Path, authority: Certificate, shown: Certificate
) -> None:
    """Where both ends show a certificate of the authority, calls pass."""
    client = certificate(tmp_path, "client", authority)
    async with serving(tls(authority, shown, require=True)) as address:
        await ask(tls(authority, client).dial, address)


Wrong = Callable[[Path, Certificate], Dial]


def plain_text(_folder: Path, _authority: Certificate) -> Dial:
    return open_channel


def without_certificate(_folder: Path, authority: Certificate) -> Dial:
    return tls(authority).dial


def of_a_stranger(folder: Path, authority: Certificate) -> Dial:
    stranger = certificate(folder, "stranger")
    return tls(authority, certificate(folder, "client", stranger)).dial


def expired(folder: Path, authority: Certificate) -> Dial:
    return tls(authority, certificate(folder, "old", authority, expired=True)).dial


def trusting_others(folder: Path, authority: Certificate) -> Dial:
    return tls(certificate(folder, "other"), certificate(folder, "client", authority)).dial


@pytest.mark.parametrize(
    "wrong", [plain_text, without_certificate, of_a_stranger, expired, trusting_others]
)
async def test_wrong_client_is_refused(
    tmp_path: Path, authority: Certificate, shown: Certificate, wrong: Wrong
) -> None:
    """A client that cannot show, or does not accept, what it must ends UNAVAILABLE at once."""
    async with serving(tls(authority, shown, require=True)) as address:
        error = await refusal(wrong(tmp_path, authority), address)
    assert error.code() == grpc.StatusCode.UNAVAILABLE


async def test_expired_server_is_refused(tmp_path: Path, authority: Certificate) -> None:
    """A command says why it does not talk to a server whose certificate has run out."""
    old = certificate(tmp_path, "old", authority, expired=True)
    async with serving(tls(authority, old)) as address:
        error = await refusal(tls(authority).dial, address)
    assert "certificate has expired" in describe(error, address)


async def test_plain_text_client_is_told(authority: Certificate, shown: Certificate) -> None:
    """A command without TLS names the variable that it lacks."""
    async with serving(tls(authority, shown)) as address:
        error = await refusal(open_channel, address)
    assert "BRAID_TLS_AUTHORITY" in describe(error, address)


async def test_plain_text_server_is_told(authority: Certificate) -> None:
    """A command with TLS says that the other side has none."""
    server = RpcServer("127.0.0.1:0", [])
    address = f"127.0.0.1:{await server.start(serving=True)}"
    error = await refusal(tls(authority).dial, address)
    await server.stop(0)
    assert "speaks plain text" in describe(error, address)


async def test_rotation_reaches_new_connections_and_leaves_old_ones(
    tmp_path: Path, authority: Certificate, shown: Certificate
) -> None:
    """After the files change a stream goes on, and new connections meet the new certificate."""
    new_authority = certificate(tmp_path, "new-authority")
    async with serving(tls(authority, shown)) as address, tls(authority).dial(address) as channel:
        watch = stub(channel).Watch(CHECK)
        await watch.read()
        shown.replace(certificate(tmp_path, "next", new_authority))
        await ask(tls(new_authority).dial, address)
        await refusal(tls(authority).dial, address)
        await stub(channel).Check(CHECK, timeout=5)
        assert not watch.done()
        watch.cancel()


async def test_half_a_rotation_changes_nothing(
    tmp_path: Path, authority: Certificate, shown: Certificate
) -> None:
    """A certificate whose key is not there yet leaves the former pair in force."""
    fresh = certificate(tmp_path, "next", authority)
    of = tls(authority, shown)
    before = of.current()
    async with serving(of) as address:
        shown.cert_path.write_bytes(fresh.cert_path.read_bytes())
        await ask(tls(authority).dial, address)
        assert of.current() is before
        shown.replace(fresh)
        assert of.current().key == fresh.key_path.read_bytes()


async def test_change_is_told(tmp_path: Path, authority: Certificate, shown: Certificate) -> None:
    """Those who keep channels hear of new files, so that they can connect anew."""
    of, told = tls(authority, shown), asyncio.Event()
    following = asyncio.create_task(of.follow(told.set))
    shown.replace(certificate(tmp_path, "next", authority))
    async with asyncio.timeout(10):
        await told.wait()
    following.cancel()


def test_key_of_another_certificate(tmp_path: Path, shown: Certificate) -> None:
    """A process does not start with a key that is not its certificate's."""
    other = certificate(tmp_path, "other")
    with pytest.raises(StartFailure, match="KEY_VALUES_MISMATCH"):
        Tls(TlsSettings(tls_certificate=shown.cert_path, tls_key=other.key_path))


@pytest.mark.parametrize(
    ("given", "needed"),
    [
        ({"BRAID_TLS_CERTIFICATE": __file__}, "BRAID_TLS_KEY"),
        ({"BRAID_TLS_KEY": __file__}, "BRAID_TLS_CERTIFICATE"),
        ({"BRAID_TLS_REQUIRE_CLIENT_CERTIFICATE": "true"}, "BRAID_TLS_CERTIFICATE"),
        (
            {
                "BRAID_TLS_REQUIRE_CLIENT_CERTIFICATE": "true",
                "BRAID_TLS_CERTIFICATE": __file__,
                "BRAID_TLS_KEY": __file__,
            },
            "BRAID_TLS_AUTHORITY",
        ),
    ],
)
def test_half_set_tls(given: dict[str, str], needed: str) -> None:
    """Settings that would protect nothing are refused with the variable that is missing."""
    with pytest.raises(SettingError, match=needed):
        TlsSettings.from_env(given)
