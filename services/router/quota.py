"""Quotas of callers: this router's part of each, and what is left of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf

from services.chassis.keys import ROUTERS
from services.chassis.mirror_state import Changes, MirrorState
from services.chassis.security.callers import Caller
from services.chassis.security.denial import Cause, Denied

CONCURRENCY_RETRY_S = 1.0
"""When a caller with too many calls may ask again; nobody knows when one of them ends."""

_MINUTE_S = 60.0


class Bucket:
    """Fills at ``rate`` a second up to ``capacity``. May be drawn below zero and then recovers."""

    __slots__ = ("_capacity", "_filled_at", "_level", "_rate")

    def __init__(self, rate: float, capacity: float, now: float) -> None:
        self._rate = rate
        self._capacity = capacity
        self._level = capacity
        self._filled_at = now

    def take(self, amount: float, now: float) -> float:
        """Takes ``amount`` and returns 0, or takes nothing and returns the seconds to wait.

        More than the capacity is had from a full bucket: it would never hold that much.
        """
        if self._rate == inf:
            return 0.0
        self._fill(now)
        missing = min(amount, self._capacity) - self._level
        if missing > 0:
            return missing / self._rate
        self._level -= amount
        return 0.0

    def give_back(self, amount: float) -> None:
        """Returns what was taken in excess; below 0 it takes what was taken too little."""
        self._level = min(self._capacity, self._level + amount)

    def resize(self, rate: float, capacity: float, now: float) -> None:
        """Changes the flow from now on; what is used stays used."""
        if self._rate == inf:
            self._level = capacity
        else:
            self._fill(now)
            used = self._capacity - self._level
            self._level = capacity - used if capacity != inf else inf
        self._rate, self._capacity, self._filled_at = rate, capacity, now

    def _fill(self, now: float) -> None:
        level = self._level + (now - self._filled_at) * self._rate
        self._level = min(self._capacity, level)
        self._filled_at = now


class Account:
    """One caller's use of this router."""

    __slots__ = ("_caller", "_most_running", "_requests", "_routers", "_running", "_tokens")

    def __init__(self, caller: Caller, routers: int, now: float) -> None:
        self._running = 0
        self._requests = Bucket(*_requests_flow(caller, routers), now)
        self._tokens = Bucket(*_tokens_flow(caller, routers), now)
        self._set_terms(caller, routers)

    def adjust(self, caller: Caller, routers: int, now: float) -> None:
        """Takes a changed quota, or another number of routers, into account."""
        if caller is self._caller and routers == self._routers:
            return
        self._requests.resize(*_requests_flow(caller, routers), now)
        self._tokens.resize(*_tokens_flow(caller, routers), now)
        self._set_terms(caller, routers)

    def _set_terms(self, caller: Caller, routers: int) -> None:
        self._caller, self._routers = caller, routers
        self._most_running = max(1.0, caller.concurrency / routers)

    def begin(self, now: float) -> None:
        """Counts a call in; raises Denied."""
        if self._running + 1 > self._most_running:
            raise self._denied(Cause.CONCURRENCY, CONCURRENCY_RETRY_S)
        wait_s = self._requests.take(1, now)
        if wait_s:
            raise self._denied(Cause.REQUESTS_PER_SECOND, wait_s)
        self._running += 1

    def end(self) -> None:
        """Counts it out."""
        self._running -= 1

    @property
    def meters_tokens(self) -> bool:
        """Whether tokens count at all."""
        return self._caller.tokens_per_minute != inf

    def take_tokens(self, tokens: float, now: float) -> None:
        """Takes what a call is expected to use; raises Denied."""
        wait_s = self._tokens.take(tokens, now)
        if wait_s:
            raise self._denied(Cause.TOKENS_PER_MINUTE, wait_s)

    def give_back_tokens(self, tokens: float) -> None:
        """Corrects what was taken by what was used."""
        self._tokens.give_back(tokens)

    def _denied(self, cause: Cause, retry_after_s: float) -> Denied:
        return Denied(cause, self._caller.caller_id, retry_after_s)


class Quotas:
    """The accounts of all callers. Follows the mirror to know how many routers share a quota."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._routers = 1
        self._accounts: dict[str, Account] = {}

    def apply(self, state: MirrorState, changes: Changes) -> None:
        """Counts the routers. Subscribes to the mirror."""
        touched = (*(entry.key for entry in changes.put), *changes.deleted)
        if any(key.startswith(ROUTERS) for key in touched):
            alive = sum(1 for key in state.entries if key.startswith(ROUTERS))
            self._routers = max(1, alive)

    def account(self, caller: Caller) -> Account:
        """The caller's account, by its quota as it is now."""
        account = self._accounts.get(caller.caller_id)
        if account is None:
            account = Account(caller, self._routers, self.clock())
            self._accounts[caller.caller_id] = account
        else:
            account.adjust(caller, self._routers, self.clock())
        return account


def _requests_flow(caller: Caller, routers: int) -> tuple[float, float]:
    rate = caller.requests_per_second / routers
    return rate, max(1.0, rate)


def _tokens_flow(caller: Caller, routers: int) -> tuple[float, float]:
    return caller.tokens_per_minute / _MINUTE_S / routers, caller.tokens_per_minute / routers
