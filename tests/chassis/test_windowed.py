"""Work on a stream of items, so many at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from services.chassis.windowed import windowed

MOST = 4


class Source:
    """Items, and how many of them were read."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.read = 0

    async def items(self) -> AsyncIterator[int]:
        """Numbers from 0."""
        for number in range(self.count):
            self.read += 1
            yield number


async def double(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


async def all_ready_work() -> None:
    """Lets everything go on that waits for nothing but its turn."""
    for _ in range(100):
        await asyncio.sleep(0)


async def test_every_item_has_a_result() -> None:
    """Thousands of items give as many results, in whatever order."""
    results = [result async for result in windowed(Source(3000).items(), double, MOST)]
    assert sorted(results) == [2 * number for number in range(3000)]


async def test_a_reader_that_stops_stops_the_items() -> None:
    """No more items are read than may be at work beside what was taken."""
    source = Source(1000)
    results = windowed(source.items(), double, MOST)
    for _ in range(10):
        await anext(results)
    await all_ready_work()
    assert source.read <= 10 + MOST + 1
    await results.aclose()


async def test_never_more_at_work_than_the_window() -> None:
    """The window is full, and never more than that."""
    at_work, seen = 0, list[int]()

    async def work(_: int) -> None:
        nonlocal at_work
        at_work += 1
        seen.append(at_work)
        await asyncio.sleep(0.001)
        at_work -= 1

    async for _ in windowed(Source(40).items(), work, MOST):
        pass
    assert max(seen) == MOST


async def test_a_slow_item_holds_nobody_up() -> None:
    """Others overtake an item that takes long."""
    gate = asyncio.Event()

    async def work(number: int) -> int:
        if number == 0:
            await gate.wait()
        return number

    results = windowed(Source(20).items(), work, MOST)
    first = [await anext(results) for _ in range(19)]
    gate.set()
    assert first == list(range(1, 20))
    assert [result async for result in results] == [0]


async def test_an_error_comes_last() -> None:
    """What runs when one item raises still gives its result; nothing more is read."""
    source, gate = Source(1000), asyncio.Event()

    async def work(number: int) -> int:
        if number == 2:
            gate.set()
            raise ValueError("broken")
        await gate.wait()
        return number

    results, got = windowed(source.items(), work, MOST), list[int]()

    async def read_all() -> None:
        async for result in results:
            got.append(result)  # what came before the error counts

    with pytest.raises(ValueError, match="broken"):
        await read_all()
    assert sorted(got) == [number for number in range(source.read) if number != 2]
    assert source.read <= MOST + 1


async def test_closing_gives_up_what_runs() -> None:
    """A reader that leaves ends the work."""
    ended = asyncio.Event()

    async def work(number: int) -> int:
        if number == 0:
            return number
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return number

    results = windowed(Source(3).items(), work, MOST)
    await anext(results)
    await asyncio.sleep(0)
    await results.aclose()
    assert ended.is_set()
