"""A router process between callers and workers, every hop under mutual TLS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import grpc
import grpc.aio
import pytest
from typer.testing import CliRunner

from braid.config.v1 import config_pb2
from services.chassis.channel import open_channel
from services.chassis.keys import caller_key
from services.chassis.registry import Registry
from services.chassis.security.settings import TlsSettings
from services.chassis.security.tls import Tls
from services.cli.app import app
from services.cli.etcd_process import EtcdProcess
from tests.callers import known
from tests.certificates import Certificate, certificate
from tests.eventually import eventually
from tests.fakes.worker import FakeWorker
from tests.router.calls import CODE, ONE_SECOND, drained, failure
from tests.router.processes import Router, connected, joined, register, running_router


@dataclass(frozen=True)
class Party:
    """One end of the mesh: its certificate and whom it trusts, as files."""

    shown: Certificate
    trusted: Path

    @property
    def environ(self) -> dict[str, str]:
        """Its variables."""
        return {
            "BRAID_TLS_CERTIFICATE": str(self.shown.cert_path),
            "BRAID_TLS_KEY": str(self.shown.key_path),
            "BRAID_TLS_AUTHORITY": str(self.trusted),
            "BRAID_TLS_REQUIRE_CLIENT_CERTIFICATE": "true",
        }

    @property
    def tls(self) -> Tls:
        """Its TLS, of the files as they are."""
        return Tls(TlsSettings.from_env(self.environ))


class Mesh:
    """A router and a worker with certificates of one authority."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = authority = certificate(folder, "authority")
        self.trusted = authority.cert_path
        self.client, self.own, self.far = (
            Party(certificate(folder, name, authority), self.trusted)
            for name in ("client", "router", "worker")
        )
        self.worker = FakeWorker("w1")

    def rotate(self) -> None:
        """Every certificate and the authority give way to new ones."""
        authority = certificate(self.folder, "next-authority")
        for party in (self.client, self.own, self.far):
            party.shown.replace(certificate(self.folder, "next", authority))
        self.trusted.write_bytes(authority.cert_path.read_bytes())


@pytest.fixture
async def mesh(tmp_path: Path) -> AsyncIterator[Mesh]:
    mesh = Mesh(tmp_path)
    await mesh.worker.start(tls=mesh.far.tls)
    yield mesh
    await mesh.worker.stop()


@pytest.fixture
async def secured(
    etcd: EtcdProcess, registry: Registry, mesh: Mesh, tmp_path: Path
) -> AsyncIterator[Router]:
    """The router, which has seen the worker's status stream."""
    router = running_router(etcd.endpoint, tmp_path, mesh.own.environ, mesh.client.tls.dial)
    async with router as running:
        await joined(running, registry, mesh.worker)
        yield running


async def test_calls_pass_and_strangers_do_not(secured: Router) -> None:
    """Call, status stream and admin port work under TLS; a plain client reaches neither port."""
    assert await secured.node_of(CODE) == "w1"
    async with connected(secured.process, open_channel) as plain:
        for asked in (plain.node_of(CODE), plain.table()):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await asked
            assert caught.value.code() == grpc.StatusCode.UNAVAILABLE


async def test_commands_speak_tls(secured: Router, mesh: Mesh) -> None:
    """`braid` reaches a port under mutual TLS by the same variables as every process."""
    arguments = ["nodes", "--router-admin", secured.process.admin_address, "--json"]
    runner = CliRunner()
    shown = await asyncio.to_thread(runner.invoke, app, arguments, env=mesh.client.environ)
    assert shown.exit_code == 0, shown.output
    assert '"w1"' in shown.output
    refused = await asyncio.to_thread(runner.invoke, app, arguments)
    assert refused.exit_code == 1
    assert "BRAID_TLS_AUTHORITY" in refused.output


async def test_rotation_drops_no_call(secured: Router, mesh: Mesh) -> None:
    """A change of authority and of all certificates costs no call, old or new."""
    stream = secured.client.GenerateStream(ONE_SECOND, timeout=20)
    await stream.read()
    mesh.rotate()
    await eventually(lambda: "certificates_reloaded" in secured.process.log)
    assert await secured.node_of(CODE) == "w1"
    async with connected(secured.process, mesh.client.tls.dial) as renewed:
        assert await renewed.node_of(CODE) == "w1"
    assert (await drained(stream))[-1].finished.served_by.node_id == "w1"


async def test_certificate_stands_for_a_caller(
    etcd: EtcdProcess, registry: Registry, mesh: Mesh, tmp_path: Path
) -> None:
    """Where callers are known by certificate, the one of a caller is served without a key."""
    named = config_pb2.Caller(certificate_names=["client"])
    environ = {**mesh.own.environ, "BRAID_ACCESS": "callers"}
    stranger = Party(certificate(tmp_path, "stranger", mesh.authority), mesh.trusted)
    async with (
        running_router(etcd.endpoint, tmp_path, environ, mesh.client.tls.dial) as router,
        connected(router.process, stranger.tls.dial) as other,
    ):
        await register(registry, mesh.worker)
        await registry.put(caller_key("editor"), known("editor", named).value)
        await eventually(lambda: outcome(router), 20)
        assert (await failure(other.node_of(CODE))).code() == grpc.StatusCode.UNAUTHENTICATED


async def outcome(router: Router) -> str:
    """Id of the node that answers; empty where the call fails."""
    try:
        return await router.node_of(CODE)
    except grpc.aio.AioRpcError:
        return ""
