"""The way back of a job's events, without an engine."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from services.chassis.errors import Draining, EngineFailure
from services.generation.stream import MERGE_FROM, EventStream
from services.generation.types import Delta, Draft, Event, Finished, FinishReason

END = Finished(FinishReason.STOP)


class Closings(Counter[str]):
    """Counts how often a stream was given up."""

    def __call__(self) -> None:
        """Gives up once more."""
        self["closed"] += 1


async def read(stream: EventStream) -> list[Event]:
    return [event async for event in stream]


async def test_events_come_in_order_and_end() -> None:
    """The iteration ends after Finished, and that is no giving up."""
    closings = Closings()
    stream = EventStream(closings)
    for event in (Delta("a"), Delta("b"), END):
        stream.deliver(event)
    assert await read(stream) == [Delta("a"), Delta("b"), END]
    await stream.aclose()
    assert closings["closed"] == 0


async def test_an_error_comes_after_what_was_sent_before() -> None:
    """Events sent before an error can still be read; nothing follows it."""
    stream = EventStream(Closings())
    stream.deliver(Delta("a"))
    stream.deliver(EngineFailure("broken"))
    assert await anext(stream) == Delta("a")
    with pytest.raises(EngineFailure):
        await anext(stream)
    assert await read(stream) == []


async def test_failing_from_outside_reaches_a_reader_that_waits() -> None:
    """A reader that waits, or that reads later, gets the error; the job is given up once."""
    closings = Closings()
    waiting, later = EventStream(closings), EventStream(closings)
    task = asyncio.create_task(read(waiting))
    await asyncio.sleep(0)
    later.deliver(Delta("a"))
    for stream in (waiting, later):
        stream.fail(Draining("over"))
        stream.deliver(END)
    with pytest.raises(Draining):
        await task
    with pytest.raises(Draining):
        await read(later)
    assert closings["closed"] == 2


async def test_closing_is_giving_up_once() -> None:
    """However often it is closed, the job is given up once and nothing is read any more."""
    closings = Closings()
    stream = EventStream(closings)
    stream.deliver(Delta("a"))
    await stream.aclose()
    await stream.aclose()
    stream.deliver(END)
    assert await read(stream) == []
    assert closings["closed"] == 1


async def test_a_reader_may_be_so_far_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream is full when its capacity of characters waits, until some are read."""
    monkeypatch.setattr(EventStream, "capacity", 4)
    stream = EventStream(Closings())
    for _ in range(2):
        assert not stream.full
        stream.count(Delta("ab"))
        stream.deliver(Delta("ab"))
    assert stream.full
    await anext(stream)
    assert not stream.full


async def test_a_late_reader_gets_longer_deltas() -> None:
    """Text that waits is merged, in order and whole, and keeps the newest block's number."""
    stream = EventStream(Closings())
    for number in range(1000):
        stream.deliver(Delta(f"{number} ", number))
    stream.deliver(END)
    *deltas, end = await read(stream)
    assert "".join(delta.text for delta in deltas if isinstance(delta, Delta)).split() == [
        str(number) for number in range(1000)
    ]
    assert len(deltas) == MERGE_FROM
    assert deltas[-1] == Delta(" ".join(map(str, range(15, 1000))) + " ", 999)
    assert end == END


async def test_a_late_reader_gets_no_drafts_of_the_past() -> None:
    """A draft that waits gives way to whatever comes next; the newest is read."""
    stream = EventStream(Closings())
    for event in (Draft("a"), Draft("ab"), Delta("abc"), Draft("d", 1), Draft("de", 1)):
        stream.deliver(event)
    assert await anext(stream) == Delta("abc")
    assert await anext(stream) == Draft("de", 1)
    stream.deliver(Draft("def", 1))
    stream.deliver(END)
    assert await read(stream) == [END]
