"""Who asks for a change, and what for."""

from __future__ import annotations

from typing import Protocol

from services.chassis.violations import Violations
from services.config_center.change import Author

MAX_REASON_BYTES = 1024


class Reasoned(Protocol):
    """A request that can say what it is for."""

    @property
    def reason(self) -> str:
        """The caller's words."""


def author_of(request: Reasoned, who: str) -> Author:
    """The author of a request; raises InvalidRequest where the reason is too long."""
    faults = Violations()
    faults.utf8("reason", request.reason, 0, MAX_REASON_BYTES)
    faults.raise_if_any()
    return Author(who, request.reason)
