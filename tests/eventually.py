"""Waiting for a condition that another process or thread brings about."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar, overload

T = TypeVar("T")

_PAUSE_S = 0.02


@overload
async def eventually(check: Callable[[], Awaitable[T]], timeout_s: float = 10.0) -> T: ...
@overload
async def eventually(check: Callable[[], T], timeout_s: float = 10.0) -> T: ...
async def eventually(check: Callable[[], Awaitable[T] | T], timeout_s: float = 10.0) -> T:
    """Calls ``check`` until it returns something true, and returns that.

    An AssertionError counts as not yet. After ``timeout_s`` the last fault, or
    the last value, is what the test fails with.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        fault: AssertionError | None = None
        value: T | None = None
        try:
            outcome = check()
            value = await outcome if inspect.isawaitable(outcome) else outcome
        except AssertionError as error:
            fault = error
        if value:
            return value
        if time.monotonic() > deadline:
            raise fault or AssertionError(f"still {value!r} after {timeout_s} s")
        await asyncio.sleep(_PAUSE_S)
