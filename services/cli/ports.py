"""Free TCP ports on loopback."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack

from services.cli.mesh_failure import NoFreePorts

HOST = "127.0.0.1"
_LOWEST, _HIGHEST = 20000, 32000
"""Below the range that systems take the ports of outgoing connections from: a
port found free here is not taken by a connection before its process listens."""

_LAST = 65535
_TRIES = 100


def free_base(count: int) -> int:
    """First of ``count`` consecutive ports that nothing listens on. Raises NoFreePorts."""
    for _ in range(_TRIES):
        base = random.randrange(_LOWEST, _HIGHEST - count)
        if first_taken(base, count) is None:
            return base
    raise NoFreePorts(f"no {count} free ports in a row between {_LOWEST} and {_HIGHEST}")


def choose_base(count: int, wanted: int | None) -> int:
    """``wanted`` if its ``count`` ports are free, any free ones if it is None.

    Raises NoFreePorts.
    """
    if wanted is None:
        return free_base(count)
    if wanted + count - 1 > _LAST:
        raise NoFreePorts(f"the mesh takes {count} ports; {wanted} leaves too few")
    taken = first_taken(wanted, count)
    if taken is not None:
        raise NoFreePorts(
            f"port {taken} is in use (the mesh takes {wanted} to {wanted + count - 1})"
        )
    return wanted


def first_taken(base: int, count: int) -> int | None:
    """The first port of a range that cannot be listened on, or None."""
    with ExitStack() as stack:
        for port in range(base, base + count):
            listener = stack.enter_context(socket.socket())
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind((HOST, port))
            except OSError:
                return port
    return None


def port_of(address: str) -> str:
    """The port of ``host:port``."""
    return address.rpartition(":")[2]
