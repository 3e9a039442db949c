"""How many calls may be sent a second time: a part of the traffic, never a storm."""

from __future__ import annotations

SHARE = 0.2
"""Second tries that each call pays for."""

RESERVE = 10.0
"""Second tries there are before any call was made, and the most that are saved up."""


class RetryBudget:
    """A balance that calls fill and second tries take from."""

    def __init__(self, share: float = SHARE, reserve: float = RESERVE) -> None:
        self._share = share
        self._reserve = reserve
        self.balance = reserve

    def deposit(self) -> None:
        """A call came in."""
        if self.balance < self._reserve:
            self.balance = min(self.balance + self._share, self._reserve)

    def withdraw(self) -> bool:
        """Takes one second try; False where the budget is used up."""
        if self.balance < 1:
            return False
        self.balance -= 1
        return True
