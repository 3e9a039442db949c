"""An S3 server in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.ports import free_port

START_S = 60.0


@contextmanager
def s3_server() -> Iterator[str]:
    """Its URL; objects are gone with it."""
    port = free_port()
    program = Path(sys.executable).with_name("moto_server")
    process = subprocess.Popen(
        [program, "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"MOTO_S3_DEFAULT_KEY_BUFFER_SIZE": str(2**24)},
    )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait(url, process)
        yield url
    finally:
        process.terminate()
        process.wait()


def _wait(url: str, process: subprocess.Popen[bytes]) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + START_S
    while True:
        try:
            opener.open(f"{url}/moto-api/", timeout=5).close()
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return
