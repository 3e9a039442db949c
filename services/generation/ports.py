"""The three ports of a worker: inference, management, probes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from services.chassis.ops import OpsServer
from services.chassis.server import RpcServer
from services.generation.record import Addresses

CLOSING_S = 1.0
"""Longest wait for calls that are being ended when the ports close."""


@dataclass(frozen=True, slots=True)
class Ports:
    """The servers of one worker."""

    inference: RpcServer
    admin: RpcServer
    ops: OpsServer

    @asynccontextmanager
    async def listening(self, host: str) -> AsyncIterator[Addresses]:
        """Listens on all three while inside; ``host`` is how others reach them.

        Raises PortInUse, with none of them left open.
        """
        async with AsyncExitStack() as stack:
            ops = await self.ops.start()
            stack.push_async_callback(self.ops.stop)
            admin = await self.admin.start(serving=True)
            stack.push_async_callback(self.admin.stop, CLOSING_S)
            inference = await self.inference.start()
            stack.push_async_callback(self.inference.stop, CLOSING_S)
            yield Addresses(
                inference=_join(host, inference), admin=_join(host, admin), ops=_join(host, ops)
            )


def _join(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
