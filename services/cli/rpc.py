"""Calls of a command: one event loop, one channel, one way to fail."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import TypeVar

import grpc
import grpc.aio

from services.chassis.process import StartFailure
from services.chassis.security.keyed_channel import keyed
from services.chassis.security.tls import Dial, Tls, dial_of
from services.chassis.settings import SettingError
from services.cli.addresses import Target
from services.cli.client_settings import ClientSettings
from services.cli.failure import describe, fail

T = TypeVar("T")

TIMEOUT_S = 10.0
"""Deadline of calls that only read or write a record."""


def call(target: Target, work: Callable[[grpc.aio.Channel], Awaitable[T]]) -> T:
    """Runs ``work`` with a channel to ``target`` and returns its result.

    Over TLS where the BRAID_TLS_* variables say so, with the key of BRAID_API_KEY or
    of the mesh. A failed RPC ends the command with one line and exit code 1.
    """
    try:
        settings = ClientSettings.from_env(os.environ)
        dial = dial_of(Tls.of(settings))
    except (SettingError, StartFailure) as error:
        fail(str(error))
    api_key = settings.api_key.get_secret_value() if settings.api_key else target.api_key
    if api_key and not settings.may_send_key(target.address):
        fail(f"no key is sent to {target.address} in plain text: set BRAID_TLS_AUTHORITY")
    try:
        return asyncio.run(_with_channel(dial, target.address, api_key, work))
    except grpc.aio.AioRpcError as error:
        fail(describe(error, target.address))


async def _with_channel(
    dial: Dial,
    address: str,
    api_key: str | None,
    work: Callable[[grpc.aio.Channel], Awaitable[T]],
) -> T:
    async with dial(address) as channel:
        return await work(keyed(channel, api_key) if api_key else channel)
