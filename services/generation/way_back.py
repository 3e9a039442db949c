"""How long an answer is under way from the engine to its caller, as far as a worker can see."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from services.generation.recent import Recent

UNSEEN_S = 0.001
"""For the wire, there and back."""
UNMEASURED_S = 0.005
"""Until the first answers have been measured."""
CERTAINTY = 0.9
_ANSWERS = 64


class WayBack:
    """Times from an answer's end in the engine until gRPC has sent it."""

    def __init__(self) -> None:
        self._times = Recent(_ANSWERS)

    def at_most(self) -> float:
        """Seconds that it hardly ever takes longer than."""
        return UNSEEN_S + self._times.quantile(CERTAINTY, UNMEASURED_S)

    def follow(self, ended: float) -> Callable[[Any], None]:
        """What gRPC is to call when it has sent an answer that the engine ended then."""
        return lambda _: self._times.note(time.monotonic() - ended)

    def doubt(self) -> None:
        """A call had no time, perhaps by what this says: it fades, or nothing could correct it."""
        self._times.forget()
