"""A process's own record in the registry, kept by a thread of its own.

A process that computes may keep its event loop waiting for longer than a lease
lives, so the heartbeats run on another loop, in another thread, over another
connection. A process that is stopped stops that thread as well, and expires.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress

import structlog

from services.chassis.errors import ServiceError
from services.chassis.heartbeat import Heartbeat, KeyTaken, ValueFactory
from services.chassis.registry import Registry

__all__ = ["KeyTaken", "Registration"]

_WITHDRAWAL_S = 3.0

log = structlog.get_logger()


class Registration:
    """Holds ``key`` under an own lease from ``run`` to ``withdraw``.

    ``value_of`` makes the record from its epoch (milliseconds since 1970, greater at
    each registration); the heartbeat thread calls it, so it must only read. A lost
    lease, a deleted or an overwritten key are put back, and a record that has changed is
    put anew, within one heartbeat, a third of ``ttl_s``.
    """

    def __init__(self, registry: Registry, key: str, value_of: ValueFactory, ttl_s: int) -> None:
        self._settings = registry.settings
        self._key = key
        self._value_of = value_of
        self._ttl_s = ttl_s
        self._registered = asyncio.Event()
        self._ended = asyncio.Event()
        self._ended.set()
        self._failure: Exception | None = None
        self._stopping = threading.Event()
        self._end_keeping: Callable[[], object] | None = None
        self._hurry: Callable[[], object] | None = None

    async def run(self) -> None:
        """Keeps the record until ``withdraw`` or cancellation, then takes it away.

        Waits for an etcd that is down and for a dead owner's lease to run out; raises
        KeyTaken where another live process has the key.
        """
        self._ended.clear()
        loop = asyncio.get_running_loop()
        work = asyncio.ensure_future(asyncio.to_thread(asyncio.run, self._work(loop)))
        try:
            await asyncio.shield(work)
        except Exception as error:
            self._failure = error
            raise
        finally:
            self._stop()
            await asyncio.wait({work})
            self._registered.set()
            self._ended.set()

    async def registered(self) -> None:
        """Returns once the record was put for the first time, or ``run`` was stopped.

        Raises what ended ``run``.
        """
        await self._registered.wait()
        if self._failure:
            raise self._failure

    def refresh(self) -> None:
        """The record has changed: puts it at once rather than at the next beat."""
        if self._hurry:
            with suppress(RuntimeError):  # the thread's loop has closed already
                self._hurry()

    async def withdraw(self) -> None:
        """Takes the record away; returns when it is gone or etcd does not answer.

        Can be called again, and before ``run``, which then ends at once.
        """
        self._stop()
        await self._ended.wait()

    def _stop(self) -> None:
        self._stopping.set()
        if self._end_keeping:
            with suppress(RuntimeError):  # the thread's loop has closed already
                self._end_keeping()

    async def _work(self, owner: asyncio.AbstractEventLoop) -> None:
        """What the thread does: beats until told to stop, then withdraws."""
        timeout_s = min(3.0, max(1.0, self._ttl_s / 3))
        async with Registry(self._settings, timeout_s=timeout_s, blocking=True) as registry:
            heartbeat = Heartbeat(
                registry,
                self._key,
                self._value_of,
                self._ttl_s,
                on_put=lambda: owner.call_soon_threadsafe(self._registered.set),
            )
            keeper = asyncio.create_task(heartbeat.keep())
            loop = asyncio.get_running_loop()
            self._end_keeping = lambda: loop.call_soon_threadsafe(keeper.cancel)
            self._hurry = lambda: loop.call_soon_threadsafe(heartbeat.hurry)
            if self._stopping.is_set():
                keeper.cancel()
            await asyncio.wait({keeper})
            await self._withdraw(heartbeat)
            if not keeper.cancelled():
                keeper.result()

    async def _withdraw(self, heartbeat: Heartbeat) -> None:
        try:
            async with asyncio.timeout(_WITHDRAWAL_S):
                await heartbeat.withdraw()
        except (ServiceError, TimeoutError) as error:  # then the lease ends by itself
            log.warning("withdrawal_failed", key=self._key, reason=str(error))
        else:
            log.info("withdrawn", key=self._key)
