"""Registrations and mirrors at work, for tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from services.chassis.entries import Entry
from services.chassis.mirror import Mirror
from services.chassis.registration import Registration
from services.chassis.registry import Registry

TTL_S = 2


def record(epoch: int) -> bytes:
    """A record that shows its epoch."""
    return b'{"epoch": %d}' % epoch


@asynccontextmanager
async def mirroring(mirror: Mirror) -> AsyncIterator[Mirror]:
    """The mirror at work, with its first state."""
    async with asyncio.TaskGroup() as tasks:
        work = tasks.create_task(mirror.run())
        try:
            async with asyncio.timeout(10):
                await mirror.ready()
            yield mirror
        finally:
            work.cancel()


@asynccontextmanager
async def registering(
    registry: Registry, key: str, ttl_s: int = TTL_S
) -> AsyncIterator[Registration]:
    """A registration that has put its record."""
    registration = Registration(registry, key, record, ttl_s)
    async with asyncio.TaskGroup() as tasks:
        work = tasks.create_task(registration.run())
        try:
            async with asyncio.timeout(10):
                await registration.registered()
            yield registration
        finally:
            work.cancel()


async def leased_entry(registry: Registry, key: str) -> Entry:
    """The entry of a registration that must be there, under a lease."""
    entry = await registry.get(key)
    assert entry
    assert entry.lease
    return entry
