"""Real etcd processes for tests, their command line, and links that can be cut."""

from __future__ import annotations

import asyncio
import json
import os
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
from tests.ports import free_port


def new_etcd(
    folder: Path, *arguments: str, client_port: int = 0, health_url: str | None = None
) -> EtcdProcess:
    """An etcd in ``folder``, not yet started."""
    return EtcdProcess(
        folder / "etcd",
        client_port or free_port(),
        free_port(),
        fsync=False,
        arguments=arguments,
        health_url=health_url,
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
def stopped_etcd(tmp_path: Path) -> Iterator[EtcdProcess]:
    """An etcd that the test starts itself."""
    etcd = new_etcd(tmp_path)
    yield etcd
    etcd.kill()


@pytest.fixture
def own_etcd(stopped_etcd: EtcdProcess) -> EtcdProcess:
    """A running etcd that the test may freeze, kill and wipe."""
    stopped_etcd.start()
    return stopped_etcd


@pytest.fixture
async def registry(etcd: EtcdProcess) -> AsyncIterator[Registry]:
    """A client of the shared etcd."""
    async with Registry(settings_for(etcd.endpoint)) as client:
        yield client


class Link:
    """A TCP proxy to one port whose connections can go silent or be cut."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._connections: set[_Connection] = set()
        self._tasks: set[asyncio.Task[None] | None] = set()
        self._refusing = False
        self.address = ""
        self.accepted = 0

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Link]:
        """Proxies while inside."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            server.close()
            self.cut()
            await asyncio.gather(*filter(None, self._tasks))

    def silence(self) -> None:
        """Lets the present connections stand and carry nothing, as a dead host would."""
        for connection in self._connections:
            connection.silent = True

    def cut(self) -> None:
        """Ends the present connections; new ones are taken."""
        for connection in tuple(self._connections):
            connection.abort()

    def cut_inside_answers(self, after_bytes: int) -> None:
        """Ends each present connection once etcd has sent so many bytes more."""
        for connection in self._connections:
            connection.answer_bytes_left = after_bytes

    def refuse(self) -> None:
        """Ends the present connections and every new one."""
        self._refusing = True
        self.cut()

    def accept(self) -> None:
        """Takes new connections again."""
        self._refusing = False

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        if self._refusing:
            writer.transport.abort()
            return
        there = await asyncio.open_connection("127.0.0.1", self._target_port)
        connection = _Connection((reader, writer), there)
        self._connections.add(connection)
        self._tasks.add(asyncio.current_task())
        try:
            await connection.carry()
        finally:
            self._connections.discard(connection)
            self._tasks.discard(asyncio.current_task())


End = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Connection:
    def __init__(self, here: End, there: End) -> None:
        self._here, self._there = here, there
        self.silent = False
        self.answer_bytes_left: int | None = None

    def abort(self) -> None:
        for _, writer in (self._here, self._there):
            writer.transport.abort()

    async def carry(self) -> None:
        """Carries both ways until either end closes."""
        ways = (self._ask(), self._answer())
        try:
            await asyncio.gather(*ways)
        except OSError:
            pass
        finally:
            self.abort()

    async def _ask(self) -> None:
        while data := await self._here[0].read(65536):
            if not self.silent:
                self._there[1].write(data)
        self.abort()

    async def _answer(self) -> None:
        while data := await self._there[0].read(65536):
            if self.silent:
                continue
            if self.answer_bytes_left is not None:
                data = data[: self.answer_bytes_left]
                self.answer_bytes_left -= len(data)
            self._here[1].write(data)
            if self.answer_bytes_left == 0:
                await self._here[1].drain()
                await asyncio.sleep(0.05)  # lets the part arrive before the end does
                break
        self.abort()
