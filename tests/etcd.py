"""Real etcd processes for tests, their command line, and links that can be cut."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from services.chassis.registry import Registry
from services.chassis.settings import EtcdSettings
from services.cli.etcd_process import EtcdProcess, etcd_binary


def free_port() -> int:
    """A port of the loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def new_etcd(folder: Path, *arguments: str, **options: Any) -> EtcdProcess:
    """An etcd in ``folder``, not yet started."""
    return EtcdProcess(
        folder / "etcd", free_port(), free_port(), fsync=False, arguments=arguments, **options
    )


def etcdctl(etcd: EtcdProcess, *arguments: str, stdin: str | None = None) -> str:
    """Runs etcdctl against ``etcd`` and returns what it printed."""
    return run_etcd_tool("etcdctl", f"--endpoints={etcd.endpoint}", *arguments, stdin=stdin)


def run_etcd_tool(tool: str, *arguments: str, stdin: str | None = None) -> str:
    """Runs etcdctl or etcdutl as it is."""
    done = subprocess.run(
        [str(etcd_binary(tool)), *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
        env={"ETCDCTL_API": "3", "PATH": os.environ["PATH"]},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def clear(etcd: EtcdProcess) -> None:
    """Removes every key."""
    body = json.dumps({"key": "AA==", "range_end": "AA=="}).encode()  # from "\0" to the end
    request = urllib.request.Request(f"http://{etcd.endpoint}/v3/kv/deleterange", data=body)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=10) as answer:
        answer.read()


def settings_for(*endpoints: str, **fields: Any) -> EtcdSettings:
    """Settings that name these endpoints."""
    return EtcdSettings(etcd=",".join(endpoints), **fields)


@pytest.fixture(scope="session")
def shared_etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdProcess]:
    """One etcd for all tests that leave it running."""
    etcd = new_etcd(tmp_path_factory.mktemp("etcd"))
    etcd.start()
    yield etcd
    etcd.kill()


@pytest.fixture
def etcd(shared_etcd: EtcdProcess) -> EtcdProcess:
    """The shared etcd without any key."""
    clear(shared_etcd)
    return shared_etcd


@pytest.fixture
def own_etcd(tmp_path: Path) -> Iterator[EtcdProcess]:
    """An etcd that the test may freeze, kill and wipe."""
    etcd = new_etcd(tmp_path)
    etcd.start()
    yield etcd
    etcd.kill()


@pytest.fixture
async def registry(etcd: EtcdProcess) -> AsyncIterator[Registry]:
    """A client of the shared etcd."""
    async with Registry(settings_for(etcd.endpoint)) as client:
        yield client


class Link:
    """A TCP proxy to one port, which can go silent, be cut, or refuse."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._refusing = False
        self.connections = 0
        self.address = ""

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Link]:
        """Proxies while inside."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            self._server.close()
            self._flowing.set()
            self.cut()

    def silence(self) -> None:
        """Keeps the connections and carries nothing, as a dead host would."""
        self._flowing.clear()

    def flow(self) -> None:
        """Carries again, and takes new connections."""
        self._refusing = False
        self._flowing.set()

    def cut(self) -> None:
        """Ends all connections at once; new ones are taken."""
        for writer in tuple(self._writers):
            writer.transport.abort()

    def refuse(self) -> None:
        """Ends all connections and every new one."""
        self._refusing = True
        self.cut()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        if self._refusing:
            writer.transport.abort()
            return
        to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
        self._writers |= {writer, to_writer}
        try:
            await asyncio.gather(self._carry(reader, to_writer), self._carry(to_reader, writer))
        except OSError:
            pass
        finally:
            for end in (writer, to_writer):
                end.transport.abort()
                self._writers.discard(end)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            await self._flowing.wait()
            writer.write(data)
            await writer.drain()
        writer.close()
