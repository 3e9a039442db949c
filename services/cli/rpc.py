"""Calls of a command: one event loop, one channel, one way to fail."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import TypeVar

import grpc
import grpc.aio

from services.chassis.process import StartFailure
from services.chassis.security.settings import TlsSettings
from services.chassis.security.tls import Dial, Tls, dial_of
from services.chassis.settings import SettingError
from services.cli.failure import describe, fail

T = TypeVar("T")

TIMEOUT_S = 10.0
"""Deadline of calls that only read or write a record."""


def call(address: str, work: Callable[[grpc.aio.Channel], Awaitable[T]]) -> T:
    """Runs ``work`` with a channel to ``address`` and returns its result.

    Over TLS where the BRAID_TLS_* variables say so. A failed RPC ends the command
    with one line and exit code 1.
    """
    dial = _dial()
    try:
        return asyncio.run(_with_channel(dial, address, work))
    except grpc.aio.AioRpcError as error:
        fail(describe(error, address))


def _dial() -> Dial:
    try:
        return dial_of(Tls.of(TlsSettings.from_env(os.environ)))
    except (SettingError, StartFailure) as error:
        fail(str(error))


async def _with_channel(
    dial: Dial, address: str, work: Callable[[grpc.aio.Channel], Awaitable[T]]
) -> T:
    async with dial(address) as channel:
        return await work(channel)
