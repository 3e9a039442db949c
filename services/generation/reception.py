"""Who may come in: calls are taken while a model serves, and end when it does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from weakref import WeakSet

from services.chassis.errors import NotReady, QueueFull, ServiceError
from services.chassis.in_flight import InFlight
from services.generation.answering import Answering, Submits
from services.generation.card import ModelCard
from services.generation.limits import Limits
from services.generation.planner import Planner
from services.generation.stream import EventStream
from services.generation.types import Job, ServedBy

RETRY_AFTER_S = 0.5


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A loaded model as calls see it; replaced whole, never changed."""

    served_by: ServedBy
    card: ModelCard
    planner: Planner
    answering: Answering
    limits: Limits
    weights_uri: str = ""
    calls: InFlight = field(default_factory=InFlight)
    """Calls that are answered by it, whatever serves by now."""


class TrackedEngine:
    """An engine whose open streams can all be ended from outside."""

    def __init__(self, engine: Submits) -> None:
        self._engine = engine
        self._open: WeakSet[EventStream] = WeakSet()

    def submit(self, job: Job) -> EventStream:
        """As the engine's."""
        stream = self._engine.submit(job)
        self._open.add(stream)
        return stream

    def fail_all(self, error: ServiceError) -> None:
        """Ends every open stream with ``error`` and gives its job up."""
        for stream in list(self._open):
            stream.fail(error)


class Reception:
    """Takes calls or says why not; counts those inside.

    ``on_change`` is called when a call comes or goes.
    """

    def __init__(self, on_change: Callable[[], None] = lambda: None) -> None:
        self._on_change = on_change
        self.calls = InFlight()
        self.model: ServedModel | None = None
        self._refusal: ServiceError | None = NotReady("the node is starting")

    @property
    def open(self) -> bool:
        """Whether calls are taken."""
        return self._refusal is None

    def serve(self, model: ServedModel | None) -> None:
        """Serves ``model`` from now on; whether calls are taken stays as it is."""
        self.model = model

    def set_limits(self, limits: Limits) -> None:
        """Holds for calls from now on."""
        if self.model is not None:
            self.model = replace(self.model, limits=limits)

    def admit(self) -> None:
        """Takes calls from now on."""
        self._refusal = None

    def refuse(self, error: ServiceError) -> None:
        """Refuses calls with ``error`` from now on; those inside stay."""
        self._refusal = error

    @contextmanager
    def admitted(self) -> Iterator[ServedModel]:
        """One call's stay. Raises the refusal in force, or QueueFull."""
        if self._refusal is not None:
            raise self._refusal
        if self.model is None:
            raise NotReady("the node has no model")
        most = self.model.limits.max_concurrency
        if self.calls.count >= most:
            raise QueueFull(f"{most} calls are running or waiting", retry_after_s=RETRY_AFTER_S)
        try:
            model = self.model
            with self.calls.counted(), model.calls.counted():
                self._on_change()
                yield model
        finally:
            self._on_change()
