"""Where a worker is in its life, told to all who watch."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Protocol

import structlog

log = structlog.get_logger()


class State(enum.Enum):
    """Stations of a worker's life, in order; FAILED can follow any of them.

    A drained worker can become READY again.
    """

    FETCHING = "fetching"
    VERIFYING = "verifying"
    LOADING = "loading"
    WARMING = "warming"
    READY = "ready"
    DRAINING = "draining"
    STOPPED = "stopped"
    FAILED = "failed"


_ORDER = (State.FETCHING, State.VERIFYING, State.LOADING, State.WARMING, State.READY)
_ENDS: Mapping[State, frozenset[State]] = {
    State.READY: frozenset({State.DRAINING, State.FAILED}),
    State.DRAINING: frozenset({State.READY, State.STOPPED, State.FAILED}),
    State.STOPPED: frozenset(),
    State.FAILED: frozenset({State.STOPPED}),
}


def may_follow(state: State, after: State) -> bool:
    """Whether ``after`` is a legal next station.

    A start goes through its stations one by one and can be broken off at each.
    """
    if state in _ENDS:
        return after in _ENDS[state]
    return after in (_ORDER[_ORDER.index(state) + 1], State.FAILED, State.STOPPED)


class Stations(Protocol):
    """What is told how far a version has come."""

    def advance(self, state: State, reason: str = "") -> None:
        """It is at the next station."""
        ...

    def explain(self, reason: str) -> None:
        """Why it still is where it is."""
        ...


class Lifecycle:
    """The one place that knows the state; used from the event loop.

    ``reason`` says why in a few words; it is empty where the state says it all.
    """

    def __init__(self) -> None:
        self.state = State.FETCHING
        self.reason = "starting"
        self.stalled = False
        self.unloaded = False
        """Whether a drained worker has given its model up."""
        self._standing = self.reason
        self._watchers: list[Callable[[], None]] = []

    @property
    def model_loaded(self) -> bool:
        """Whether the weights are in memory and warm."""
        return self.state in (State.READY, State.DRAINING) and not self.unloaded

    @property
    def accepting(self) -> bool:
        """Whether new work is taken."""
        return self.state is State.READY and not self.stalled

    def watch(self, told: Callable[[], None]) -> None:
        """Calls ``told`` after each change, for as long as the process lives."""
        self._watchers.append(told)

    def advance(self, state: State, reason: str = "") -> None:
        """Moves on. Raises ValueError for a station that cannot come next."""
        if not may_follow(self.state, state):
            raise ValueError(f"{state.name} cannot follow {self.state.name}")
        self.state = state
        self._standing = reason
        self._tell(reason)

    def explain(self, reason: str) -> None:
        """Says why the state is what it is, without leaving it."""
        self._standing = reason
        if reason != self.reason and not self.stalled:
            self._tell(reason)

    def stall(self, reason: str) -> None:
        """The engine is busy and makes no steps: nothing new is taken."""
        self.stalled = True
        self._tell(reason)

    def recover(self) -> None:
        """The engine makes steps again."""
        self.stalled = False
        self._tell(self._standing)

    def _tell(self, reason: str) -> None:
        self.reason = reason
        log.info("node_state", state=self.state.name, reason=reason, accepting=self.accepting)
        for told in self._watchers:
            told()
