"""A loop that is run turn by turn."""

from __future__ import annotations

import threading

import pytest

from services.diffusion_worker.turns import Turns


class Counting:
    """Counts its turns, and how it ended."""

    def __init__(self, turns: int) -> None:
        self.done, self.ended = 0, ""
        self.turns = Turns(self._work)
        self._limit = turns

    def _work(self) -> None:
        try:
            for _ in range(self._limit):
                self.done += 1
                self.turns.pause()
            self.ended = "done"
        except Exception:
            self.ended = "failed"
        finally:
            self.ended = self.ended or "closed"


def test_a_turn_lasts_until_the_pause() -> None:
    """Nothing runs before the first turn, one step in each, the rest in the last."""
    work = Counting(2)
    assert work.done == 0
    for turn in (1, 2):
        work.turns.take()
        assert (work.done, work.ended) == (turn, "")
    work.turns.take()
    assert work.ended == "done"


def test_close_ends_the_work_where_it_pauses() -> None:
    """It unwinds, past whatever catches exceptions, and leaves no thread; closing twice is fine."""
    work = Counting(5)
    work.turns.take()
    work.turns.close()
    work.turns.close()
    assert (work.done, work.ended) == (1, "closed")
    assert work.turns not in threading.enumerate()


def test_work_that_never_had_a_turn_is_closed() -> None:
    """It never runs."""
    work = Counting(5)
    work.turns.close()
    assert work.done == 0


def test_a_fault_ends_the_turn_it_is_in() -> None:
    """Whoever gave the turn gets it; there is no turn after it."""

    def fail() -> None:
        raise ValueError("work")

    turns = Turns(fail)
    with pytest.raises(ValueError, match="work"):
        turns.take()
    turns.join()
    with pytest.raises(RuntimeError, match="ended"):
        turns.take()
    turns.close()
