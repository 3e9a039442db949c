"""Connections to the inference ports of workers."""

from __future__ import annotations

import asyncio

import grpc.aio

from services.chassis.channel import open_channel
from services.chassis.security.tls import Dial

SERVICE = "braid.inference.v1.InferenceService"
GENERATE = "Generate"
GENERATE_STREAM = "GenerateStream"
GENERATE_BATCH = "GenerateBatch"


class Link:
    """One connection, its two calls, which take and give bytes, and how many run on it."""

    def __init__(self, address: str, dial: Dial = open_channel) -> None:
        self._channel = dial(address)
        self.generate: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = self._channel.unary_unary(
            f"/{SERVICE}/{GENERATE}"
        )
        self.generate_stream: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = (
            self._channel.unary_stream(f"/{SERVICE}/{GENERATE_STREAM}")
        )
        self._running = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def take(self) -> None:
        """Keeps the connection open until it is released as often."""
        self._running += 1
        self._idle.clear()

    def release(self) -> None:
        """A call on it has ended."""
        self._running -= 1
        if not self._running:
            self._idle.set()

    async def connected(self, timeout_s: float) -> bool:
        """Connects if need be; False where the port does not answer in time."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._channel.channel_ready()
        except TimeoutError:
            return False
        return True

    async def close(self) -> None:
        """Closes once the last call on it has ended."""
        await self._idle.wait()
        await self._channel.close()


class Links:
    """One link for each address in use."""

    def __init__(self, tasks: asyncio.TaskGroup, dial: Dial = open_channel) -> None:
        self.dial = dial
        self._tasks = tasks
        self._links: dict[str, Link] = {}

    def at(self, address: str) -> Link:
        """The link to ``address``, opened at its first use."""
        link = self._links.get(address)
        if link is None:
            link = self._links[address] = Link(address, self.dial)
        return link

    def retire(self, address: str) -> None:
        """Nothing new goes there; calls that run on the link end in peace."""
        link = self._links.pop(address, None)
        if link is not None:
            self._tasks.create_task(link.close())

    def renew(self) -> None:
        """Opens every link anew at its next use, as certificates have changed."""
        for address in tuple(self._links):
            self.retire(address)
