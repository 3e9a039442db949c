"""Bad fields of one message, gathered so that a caller learns of all at once."""

from __future__ import annotations

import math

from services.chassis.errors import FieldViolation, InvalidRequest


class Violations:
    """What is wrong with one message; fields are proto paths."""

    def __init__(self) -> None:
        self._found: list[FieldViolation] = []

    def add(self, field: str, description: str) -> None:
        """Notes one bad field. ``description`` never quotes text of the request."""
        self._found.append(FieldViolation(field, description))

    def require(self, holds: bool, field: str, description: str) -> None:
        """Notes ``field`` unless ``holds``."""
        if not holds:
            self.add(field, description)

    def integer(self, field: str, value: int | None, low: int, high: int) -> None:
        """``value`` must lie in low..high; None is unset and fine."""
        if value is not None and not low <= value <= high:
            self.add(field, f"must be {low} to {high}, is {value}")

    def number(
        self, field: str, value: float | None, low: float, high: float, *, over: bool = False
    ) -> None:
        """Likewise for a finite number; ``over`` leaves ``low`` itself out."""
        if value is None:
            return
        above = value > low if over else value >= low
        if not (math.isfinite(value) and above and value <= high):
            self.add(field, f"must be {'over ' if over else ''}{low:g} to {high:g}, is {value:g}")

    def utf8(self, field: str, text: str, low: int, high: int) -> None:
        """``text`` must take low..high bytes of UTF-8."""
        size = len(text.encode("utf-8"))
        if not low <= size <= high:
            self.add(field, f"must take {low} to {high} bytes, takes {size}")

    def raise_if_any(self) -> None:
        """Raises InvalidRequest with every violation; the message names the first."""
        if not self._found:
            return
        first, more = self._found[0], len(self._found) - 1
        rest = f" (and {more} more)" if more else ""
        raise InvalidRequest(
            f"{first.field}: {first.description}{rest}", violations=tuple(self._found)
        )
