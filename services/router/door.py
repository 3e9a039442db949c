"""The door of the router: what lets calls in, and what one call is to it."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Protocol, Self

from services.router.features import Features
from services.router.passage import Context, Passage

Received = Mapping[str, str | bytes]


class Visit(Protocol):
    """One call inside the door; it counts until the block ends."""

    @property
    def caller_id(self) -> str:
        """Who calls; empty where nobody asks."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None: ...

    def require_operator(self) -> None:
        """Raises what the caller is told where it is no operator."""

    def admit(self, features: Features) -> None:
        """Lets the request in; raises what its caller is told."""

    def answered(self, answer: bytes | None) -> None:
        """The answer was given: this, or None where it went out as a stream."""


class Door(Protocol):
    """Lets calls in."""

    def greet(self, context: Context) -> None:
        """Lets a stream of requests begin; raises what a caller who may send none is told."""

    def visit(self, passage: Passage, received: Received) -> Visit:
        """Begins a visit; raises what a caller who is not let in is told."""


class _Anybody:
    """Everybody's visit where nobody is asked."""

    caller_id = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_ended: object) -> None:
        """Nothing was counted."""

    def require_operator(self) -> None:
        """Everybody is one."""

    def admit(self, _features: Features) -> None:
        """Everything goes."""

    def answered(self, _answer: bytes | None) -> None:
        """Nobody counts."""


class OpenDoor:
    """Lets everybody in, as nobody."""

    def __init__(self) -> None:
        self._anybody = _Anybody()

    def greet(self, _context: Context) -> None:
        """Lets any begin."""

    def visit(self, _passage: Passage, _received: Received) -> Visit:
        """The same for all."""
        return self._anybody
