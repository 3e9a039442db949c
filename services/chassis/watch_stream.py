"""Reading a watch so that a dead link cannot pass for a quiet one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc.aio

from services.chassis.registry_faults import WatchEnded

PULSE_S = 1.0
MISSED_PULSES = 3
"""A watch asks for a sign of life each PULSE_S; with so many missing it is dead."""


async def responses(call: Any) -> AsyncIterator[Any]:
    """The messages of a watch call, for ever; raises WatchEnded where they end or stay away."""
    while True:
        response = await _read(call)
        if response is grpc.aio.EOF:
            raise WatchEnded("etcd ended the watch")
        yield response


async def _read(call: Any) -> Any:
    """The next message or EOF.

    Counts waits instead of taking the time once: after a busy spell of this event
    loop the messages that wait to be read must not come too late.
    """
    reading = asyncio.ensure_future(call.read())
    try:
        for _ in range(MISSED_PULSES):
            if (await asyncio.wait({reading}, timeout=PULSE_S))[0]:
                return reading.result()
        raise WatchEnded(f"etcd gave no sign of life for {MISSED_PULSES * PULSE_S:g} s")
    finally:
        reading.cancel()
