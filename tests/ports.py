"""Ports for processes that tests start."""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Iterator
from itertools import cycle

HOST = "127.0.0.1"
_LOWEST, _COUNT = 12_000, 8_000
"""Below the range that `braid up` chooses from, and that systems take outgoing ports from."""


def _rotation() -> Iterator[int]:
    """The ports of this process's share, each again only after all the others."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    share = _COUNT // workers
    start = random.randrange(share)
    return cycle(_LOWEST + worker * share + (start + step) % share for step in range(share))


_ports = _rotation()


def free_port() -> int:
    """A port of the loopback that nobody listens on, and that no other test is given."""
    return next(port for port in _ports if _is_free(port))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
