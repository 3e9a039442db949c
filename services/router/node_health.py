"""What calls to one node came to, and whether it still deserves calls: a state machine."""

from __future__ import annotations

import enum

IN_A_ROW = 5
"""Failures one after another that make a node suspect."""

WINDOW = 20
"""Latest outcomes that are looked at for a share of failures."""

FEWEST, SUSPECT_SHARE = 10, 0.5
"""At least so many outcomes, so many of them failures, make a node suspect as well."""

FIRST_EJECTION_S, LONGEST_EJECTION_S = 2.0, 60.0

_MASK = (1 << WINDOW) - 1


class Phase(enum.Enum):
    """How far a node is trusted."""

    TRUSTED = "trusted"
    EJECTED = "ejected"
    HALF_OPEN = "half_open"
    """Takes one call at a time, to be judged by it."""


class NodeHealth:
    """Changes in place, like a node's load; times are seconds of a monotonic clock."""

    __slots__ = ("_ejected_s", "_failures", "_seen", "_trusted_at", "in_a_row", "phase", "probed")

    def __init__(self) -> None:
        self.phase = Phase.TRUSTED
        self.in_a_row = 0
        self.probed = False
        """Whether the one call of a half-open node is under way."""
        self._failures = 0
        """Bit by bit, the latest outcome lowest."""
        self._seen = 0
        self._ejected_s = 0.0
        self._trusted_at = 0.0

    @property
    def suspect(self) -> bool:
        """Whether its failures are too many, in a row or by their share."""
        if self.in_a_row >= IN_A_ROW:
            return True
        share = SUSPECT_SHARE * self._seen
        return self._seen >= FEWEST and self._failures.bit_count() >= share

    def succeeded(self) -> None:
        """Takes a good outcome."""
        self.in_a_row = 0
        self._note(0)

    def failed(self) -> None:
        """Takes an outcome that the node is to blame for."""
        self.in_a_row += 1
        self._note(1)

    def eject(self, now: float) -> float:
        """Ejects the node and returns for how many seconds.

        Each time twice as long as the last, unless it has been trusted for as long since.
        """
        steady = self.phase is Phase.TRUSTED and now - self._trusted_at >= self._ejected_s
        longer_s = FIRST_EJECTION_S if steady else 2 * self._ejected_s
        self._ejected_s = min(max(longer_s, FIRST_EJECTION_S), LONGEST_EJECTION_S)
        self.phase, self.probed = Phase.EJECTED, False
        return self._ejected_s

    def half_open(self) -> None:
        """The ejection is over; what comes of the next call decides."""
        self.phase, self.probed = Phase.HALF_OPEN, False

    def trust(self, now: float) -> None:
        """Gives the node its calls back, with nothing held against it."""
        self.phase, self.probed = Phase.TRUSTED, False
        self.in_a_row = self._failures = self._seen = 0
        self._trusted_at = now

    def _note(self, failure: int) -> None:
        self._failures = (self._failures << 1 | failure) & _MASK
        if self._seen < WINDOW:
            self._seen += 1
