"""The config center as a process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import aiohttp

from tests.eventually import eventually
from tests.ports import free_port


@contextmanager
def config_center_process(
    etcd: str, port: int, ops_port: int, more: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """A running ``braid-config-center``; killed at the end if it still runs."""
    environ = {
        **os.environ,
        "BRAID_ETCD": etcd,
        "BRAID_PORT": str(port),
        "BRAID_OPS_PORT": str(ops_port),
        **(more or {}),
    }
    command = [sys.executable, "-m", "services.config_center.main"]
    process = subprocess.Popen(
        command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


async def _readiness(ops_port: int) -> dict[str, object]:
    async with aiohttp.ClientSession() as client:
        try:
            async with client.get(f"http://127.0.0.1:{ops_port}/ready") as answer:
                return {"status": answer.status, **await answer.json()}
        except aiohttp.ClientError as error:
            raise AssertionError("not up yet") from error


async def ready(ops_port: int) -> None:
    """Returns once the config center is ready."""

    async def told() -> bool:
        return (await _readiness(ops_port))["status"] == 200

    await eventually(told)


async def test_waits_for_etcd_and_says_so() -> None:
    """Without etcd it runs, is not ready and names the reason; SIGTERM ends it with 0."""
    ops_port = free_port()
    with config_center_process(f"127.0.0.1:{free_port()}", free_port(), ops_port) as process:

        async def told() -> bool:
            readiness = await _readiness(ops_port)
            return readiness["status"] == 503 and "etcd" in str(readiness["reason"])

        await eventually(told)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0


async def test_port_in_use_is_one_clear_line() -> None:
    """A second config center on the same port exits with 1 and names the address."""
    port, ops_port = free_port(), free_port()
    with config_center_process("127.0.0.1:1", port, ops_port):
        await eventually(lambda: _readiness(ops_port))
        with config_center_process("127.0.0.1:1", port, free_port()) as second:
            _, errors = second.communicate(timeout=20)
    assert second.returncode == 1
    assert f"127.0.0.1:{port}" in errors
    assert "Traceback" not in errors
