"""Two runs of the same work: the first success wins, and nothing is left running."""

from __future__ import annotations

import asyncio

import pytest

from services.router.hedging import Race, Start

SOON_S = 0.01


class Work:
    """Runs that the test ends; what was started, and what was let go."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.cancelled: list[str] = []
        self.discarded: list[str] = []
        self._ends: dict[str, asyncio.Future[str]] = {}

    def run(self, name: str) -> Start[str]:
        """A run that lasts until it is told its end."""
        self._ends[name] = asyncio.get_running_loop().create_future()

        async def work() -> str:
            self.started.append(name)
            try:
                return await self._ends[name]
            except asyncio.CancelledError:
                self.cancelled.append(name)
                raise

        return work

    def answer(self, name: str) -> None:
        """The run succeeds."""
        self._ends[name].set_result(name)

    def fail(self, name: str) -> None:
        """The run fails."""
        self._ends[name].set_exception(OSError(name))


async def settled() -> None:
    """Lets everybody notice what has happened."""
    for _ in range(5):
        await asyncio.sleep(0)


async def race(work: Work, *, spare: bool = True) -> tuple[Race[str], asyncio.Task[str]]:
    """A race that has asked for its second run."""
    asked = asyncio.Event()
    first = work.run("first")

    def second() -> Start[str] | None:
        asked.set()
        return work.run("second") if spare else None

    running = Race(first, second, SOON_S, work.discarded.append)
    result = asyncio.create_task(running.result())
    await asked.wait()
    await asyncio.sleep(0)
    return running, result


async def test_quick_first_run_stays_alone() -> None:
    """A first run that is done in time has no second."""
    work = Work()
    first = work.run("first")
    work.answer("first")
    running = Race(first, lambda: pytest.fail("asked for a second"), 60, work.discarded.append)
    assert await running.result() == "first"
    assert work.started == ["first"]


@pytest.mark.parametrize(("winner", "loser"), [("first", "second"), ("second", "first")])
async def test_first_success_wins(winner: str, loser: str) -> None:
    """Whichever answers first is taken and the other one is cancelled."""
    work = Work()
    running, result = await race(work)
    work.answer(winner)
    assert await result == winner
    assert work.cancelled == [loser]
    assert running.second_won == (winner == "second")


async def test_failure_waits_for_the_other() -> None:
    """A run that fails does not decide while the other one goes on."""
    work = Work()
    _, result = await race(work)
    work.fail("first")
    await settled()
    work.answer("second")
    assert await result == "second"


async def test_both_fail() -> None:
    """Where both fail the last failure is raised."""
    work = Work()
    _, result = await race(work)
    work.fail("second")
    await settled()
    work.fail("first")
    with pytest.raises(OSError, match="first"):
        await result


async def test_both_answer_at_once() -> None:
    """Of two answers one is taken and the other let go."""
    work = Work()
    _, result = await race(work)
    work.answer("first")
    work.answer("second")
    assert await result == "first"
    assert work.discarded == ["second"]


async def test_nobody_to_run_the_second() -> None:
    """Without a second node the first run is simply waited for."""
    work = Work()
    _, result = await race(work, spare=False)
    work.answer("first")
    assert await result == "first"


async def test_cancelled_race_cancels_both() -> None:
    """A caller that goes away takes both runs along."""
    work = Work()
    _, result = await race(work)
    result.cancel()
    await asyncio.gather(result, return_exceptions=True)
    assert sorted(work.cancelled) == ["first", "second"]
