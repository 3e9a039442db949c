"""Calls of a command: one event loop, one channel, one way to fail."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import grpc
import grpc.aio

from services.chassis.channel import open_channel
from services.cli.failure import describe, fail

T = TypeVar("T")

TIMEOUT_S = 10.0
"""Deadline of calls that only read or write a record."""


def call(address: str, work: Callable[[grpc.aio.Channel], Awaitable[T]]) -> T:
    """Runs ``work`` with a channel to ``address`` and returns its result.

    A failed RPC ends the command with one line and exit code 1.
    """
    try:
        return asyncio.run(_with_channel(address, work))
    except grpc.aio.AioRpcError as error:
        fail(describe(error, address))


async def _with_channel(address: str, work: Callable[[grpc.aio.Channel], Awaitable[T]]) -> T:
    async with open_channel(address) as channel:
        return await work(channel)
