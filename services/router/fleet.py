"""Several router processes on one inference port, each a router of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import time
from asyncio.subprocess import Process
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import structlog

from services.chassis import tethered
from services.chassis.backoff import Backoff
from services.chassis.process import StartFailure, Stop
from services.chassis.server import PortInUse
from services.router.settings import RouterSettings

STEADY_S = 5.0
"""A process that gives up sooner than this cannot run as it is told to."""

PORTS_EACH = 2
"""Ports of its own that a process has: admin and ops."""

log = structlog.get_logger()


class Fleet:
    """Starts the processes, starts one anew that ends, and stops them all together.

    The kernel shares connections out among them (SO_REUSEPORT). They know
    nothing of each other but what etcd says.
    """

    def __init__(self, settings: RouterSettings, environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._environ = dict(environ)

    async def run(self, stop: Stop) -> None:
        """Runs until ``stop``; raises StartFailure where a process does not hold."""
        with _held(self._settings.host, self._settings.port) as port:
            async with asyncio.TaskGroup() as tasks:
                for index in range(self._settings.processes):
                    tasks.create_task(self._keep(index, port, stop))

    async def _keep(self, index: int, port: int, stop: Stop) -> None:
        backoff = Backoff()
        while not stop.requested:
            started = time.monotonic()
            process = await self._start(index, port)
            log.info("process_started", index=index, pid=process.pid)
            code = await _ended(process, stop)
            if stop.requested:
                return
            lasted_s = time.monotonic() - started
            log.warning("process_ended", index=index, exit_code=code)
            if code > 0 and lasted_s < STEADY_S:
                raise StartFailure(f"router process {index} ended with exit code {code}", code)
            await asyncio.sleep(backoff.next(lasted_s))

    async def _start(self, index: int, port: int) -> Process:
        tether = [sys.executable, "-I", "-S", tethered.__file__, str(os.getpid())]
        program = [sys.executable, "-m", "services.router.main"]
        environ = self._environ | self._own(index, port)
        return await asyncio.create_subprocess_exec(
            *tether, *program, env=environ, start_new_session=True
        )

    def _own(self, index: int, port: int) -> dict[str, str]:
        """Variables of one process: the port that all share, and what is its own."""
        settings = self._settings
        own = {
            "processes": 1,
            "port_shared": True,
            "port": port,
            "node_id": f"{settings.own_id}-{index}",
            "admin_port": _nth(settings.admin_port, index),
            "ops_port": _nth(settings.ops_port, index),
        }
        if settings.state_dir:
            own["state_dir"] = settings.state_dir / str(index)
        return {settings.variable(name): str(value) for name, value in own.items()}


def _nth(port: int, index: int) -> int:
    return port + PORTS_EACH * index if port else 0


@contextmanager
def _held(host: str, port: int) -> Iterator[int]:
    """Keeps a port for the processes, to the exclusion of everybody else; yields its number.

    First bound as if it was not to be shared, which fails where anybody has it.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as sole, socket.socket(family) as shared:
        try:
            sole.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sole.bind((host, port))
            number: int = sole.getsockname()[1]
            sole.close()
            shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            shared.bind((host, number))
        except OSError:
            raise PortInUse(f"{host}:{port}") from None
        yield number


async def _ended(process: Process, stop: Stop) -> int:
    """Its exit code, once it has ended by itself or because of the stop."""
    ending = asyncio.ensure_future(process.wait())
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({ending, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        return await ending
    finally:
        stopping.cancel()
        if process.returncode is None:
            process.kill()
