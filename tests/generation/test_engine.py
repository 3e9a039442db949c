"""The engine: many jobs, one loop, one thread."""

from __future__ import annotations

import asyncio
import gc
import math
import time
from dataclasses import replace

import pytest
from torch import Tensor

from services.ar_worker.sequence import NextToken
from services.chassis.errors import (
    DeadlineExceeded,
    Draining,
    EngineFailure,
    InvalidRequest,
    LimitExceeded,
    QueueFull,
    SlowReader,
)
from services.generation import step_loop, stream
from services.generation.engine import EngineLimits, EventStream
from services.generation.sequence import Family, Sequence
from services.generation.types import Delta, FinishReason, Job, Priority
from tests.eventually import eventually
from tests.generation.engines import (
    DIFFUSION,
    ENDLESS,
    NEXT_TOKEN,
    WatchedModel,
    collect,
    finished,
    running,
    text,
)
from tests.generation.tiny import PLAN, job, prompt

LONG = job(prompt(20), 200, denoising=replace(PLAN, edit_threshold=1))
FAMILIES = pytest.mark.parametrize("family", [DIFFUSION, NEXT_TOKEN], ids=["diffusion", "ar"])


@FAMILIES
async def test_an_answer_comes_in_parts_and_ends(family: Family) -> None:
    """Deltas join to the answer; the last event has the figures."""
    asked = job(max_new_tokens=24)
    async with running(WatchedModel(), family) as engine:
        events = await collect(engine, asked)
        usage, timing = finished(events).usage, finished(events).timing
    assert len(text(events).split()) == 24
    assert usage.prompt_tokens == 11
    assert usage.completion_tokens == 24
    assert usage.tokens_per_forward == pytest.approx(usage.completion_tokens / usage.forward_passes)
    assert (usage.denoise_steps > 0) == (family is DIFFUSION)
    assert finished(events).seed == 7
    assert min(timing.queue, timing.prefill, timing.decode) >= 0
    assert timing.queue + timing.prefill + timing.decode == pytest.approx(timing.total)
    assert timing.first_output <= timing.total


@FAMILIES
async def test_mixed_jobs_give_what_they_give_alone(family: Family) -> None:
    """Answers are the same alone and among others that come and go."""
    jobs = [
        job(prompt(5 + 9 * n, n), 6 + 3 * n, temperature=0.8 * (n % 2), seed=n) for n in range(10)
    ]
    async with running(WatchedModel(), family) as engine:
        alone = [text(await collect(engine, one)) for one in jobs]
        together = await asyncio.gather(*(collect(engine, one) for one in jobs))
    assert [text(events) for events in together] == alone


@FAMILIES
async def test_rows_at_different_stages_share_a_forward(family: Family) -> None:
    """A job joins at the next step: forwards hold several sequences at once."""
    model = WatchedModel()
    async with running(model, family) as engine:
        await asyncio.gather(*(collect(engine, job(max_new_tokens=30)) for _ in range(4)))
    assert max(model.batches) == 4


@FAMILIES
async def test_stop_texts_end_the_answer(family: Family) -> None:
    """The same stop text ends both paradigms' answers; what was computed behind it is counted."""
    async with running(WatchedModel(), family) as engine:
        whole = text(await collect(engine, job(max_new_tokens=24)))
        words = whole.split()
        events = await collect(engine, job(max_new_tokens=24, stop=(f" {words[2]} ",)))
    cut = whole.index(f" {words[2]} ")
    assert text(events) == whole[:cut]
    assert finished(events).finish_reason is FinishReason.STOP
    usage = finished(events).usage
    assert usage.completion_tokens + usage.discarded_tokens <= 24
    assert (usage.discarded_tokens > 0) is (usage.blocks > 0)


async def test_cancel_frees_the_slot_within_one_step() -> None:
    """After a cancel the running forward ends, and the slot is free."""
    model = WatchedModel(slots=1)
    async with running(model) as engine:
        async with engine.submit(LONG) as events:
            await anext(events)
            model.gate.clear()
        at_cancel = model.forwards
        model.gate.set()
        await asyncio.wait_for(engine.idle(), 10)
        assert model.forwards <= at_cancel + 1
        assert engine.snapshot().running == 0


async def test_cancelling_the_reader_cancels_the_job() -> None:
    """A task cancelled while it waits for the next event frees the slot."""
    model = WatchedModel(slots=1)
    async with running(model) as engine:
        model.gate.clear()
        reader = asyncio.create_task(collect(engine, LONG))
        await eventually(lambda: engine.snapshot().running == 1)
        reader.cancel()
        model.gate.set()
        with pytest.raises(asyncio.CancelledError):
            await reader
        await asyncio.wait_for(engine.idle(), 10)


async def test_many_cancelled_jobs_leak_nothing() -> None:
    """After 100 cancels at all stages every slot is free and the next answer is right."""
    model = WatchedModel()
    async with running(model) as engine:
        expected = text(await collect(engine, job()))
        for count in range(100):
            async with engine.submit(LONG) as events:
                for _ in range(count % 3):
                    await anext(events)
        await asyncio.wait_for(engine.idle(), 10)
        assert len(engine._loop._free_slots) == 4
        assert engine.snapshot().queued == engine.snapshot().running == 0
        answers = await asyncio.gather(*(collect(engine, job()) for _ in range(4)))
        assert {text(events) for events in answers} == {expected}


async def test_queued_jobs_that_are_cancelled_never_run() -> None:
    """With one slot taken and 20 waiting, 19 cancelled ones cost no forward."""
    model = WatchedModel(slots=1)
    async with running(model) as engine:
        expected = text(await collect(engine, job(prompt(3))))
        model.gate.clear()
        async with engine.submit(LONG):
            await eventually(lambda: engine.snapshot().running == 1)
            waiting = [engine.submit(job()) for _ in range(20)]
            for each in waiting[1:]:
                await each.aclose()
            assert engine.snapshot().queued == 1
            new = engine.submit(job(prompt(3)))
        model.gate.set()
        opened: list[Job] = []
        engine._loop._family = _Recording(opened)
        assert text([event async for event in new]) == expected
        assert len(opened) <= 2
        await waiting[0].aclose()


async def test_a_full_queue_refuses_at_once() -> None:
    """QueueFull comes from submit itself and says when to try again."""
    model = WatchedModel(slots=1)
    async with running(model, limits=EngineLimits(queue_length=1)) as engine:
        model.gate.clear()
        async with engine.submit(LONG):
            await eventually(lambda: engine.snapshot().running == 1)
            async with engine.submit(job()):
                with pytest.raises(QueueFull) as refused:
                    engine.submit(job())
        assert refused.value.retry_after_s
        model.gate.set()
        await asyncio.wait_for(engine.idle(), 10)
        assert text(await collect(engine, job()))


async def test_refused_jobs_can_be_collected_at_any_moment() -> None:
    """Collecting what refusals left behind, even inside the queue's lock, holds nothing up."""
    model = WatchedModel(slots=1)
    threshold = gc.get_threshold()
    async with running(model, limits=EngineLimits(queue_length=0)) as engine:
        held = engine.submit(LONG)
        await anext(held)
        model.gate.clear()
        gc.set_threshold(1, 1_000_000, 1_000_000)
        try:
            for _ in range(200):
                with pytest.raises(QueueFull):
                    engine.submit(job())
        finally:
            gc.set_threshold(*threshold)
        await held.aclose()
        model.gate.set()
        await asyncio.wait_for(engine.idle(), 10)


@pytest.mark.parametrize("when", ["queued", "running"])
async def test_deadlines_end_a_job_wherever_it_is(when: str) -> None:
    """DEADLINE_EXCEEDED in the queue and in a slot; the others go on."""
    model = WatchedModel(slots=1 if when == "queued" else 2)
    async with running(model) as engine, engine.submit(LONG) as other:
        await anext(other)
        model.gate.clear()
        late = engine.submit(replace(LONG, deadline=time.monotonic() + 0.05))
        await asyncio.sleep(0.06)
        model.gate.set()
        with pytest.raises(DeadlineExceeded):
            await _drain(late)
        await anext(other)


async def test_a_deadline_that_has_passed_is_refused() -> None:
    """No forward is spent on an answer that nobody can use."""
    model = WatchedModel()
    async with running(model) as engine:
        with pytest.raises(DeadlineExceeded):
            engine.submit(job(deadline=time.monotonic()))
    assert model.forwards == 0


@FAMILIES
async def test_answer_time_ends_with_what_there_is(family: Family) -> None:
    """At answer_by the answer so far is the answer, as a best effort."""
    model = WatchedModel()
    async with running(model, family) as engine:
        whole = text(await collect(engine, LONG))
        asked = replace(LONG, answer_by=time.monotonic() + 30)
        async with engine.submit(asked) as stream_:
            events = [await anext(stream_)]
            model.gate.clear()
            engine._loop.runs[0].ticket.job = replace(asked, answer_by=time.monotonic())
            model.gate.set()
            events += [event async for event in stream_]
    assert finished(events).finish_reason is FinishReason.DEADLINE
    assert finished(events).best_effort
    assert whole.startswith(text(events)[:10])
    assert len(text(events)) < len(whole)


async def test_no_time_for_a_single_token() -> None:
    """A budget that is over before the first forward is an error, not an empty answer."""
    async with running(WatchedModel()) as engine:
        with pytest.raises(DeadlineExceeded):
            await collect(engine, job(answer_by=time.monotonic()))


async def test_an_answer_ends_before_it_is_read() -> None:
    """A reader that is behind holds no slot: others run, and it loses nothing."""
    async with running(WatchedModel(slots=1), NEXT_TOKEN) as engine:
        slow = engine.submit(job(max_new_tokens=200))
        assert text(await collect(engine, job()))
        await asyncio.wait_for(engine.idle(), 20)
        assert len(text([event async for event in slow]).split()) == 200


async def test_a_sequence_waits_for_a_reader_far_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the stream's capacity a sequence stops computing; another one is not held up."""
    monkeypatch.setattr(EventStream, "capacity", 150)
    model = WatchedModel(slots=2)
    async with running(model, NEXT_TOKEN) as engine:
        slow = engine.submit(job(max_new_tokens=200))
        await eventually(lambda: slow.full)
        await collect(engine, job())
        forwards = model.forwards
        await collect(engine, job(max_new_tokens=20))
        assert model.forwards == forwards + 20
        events = [event async for event in slow]
    assert len(text(events).split()) == 200


async def test_a_reader_that_stalls_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the stall limit the call ends; what was sent before can still be read."""
    monkeypatch.setattr(step_loop, "STALL_LIMIT_S", 0.1)
    monkeypatch.setattr(EventStream, "capacity", 150)
    async with running(WatchedModel(slots=1), NEXT_TOKEN) as engine:
        slow = engine.submit(job(max_new_tokens=200))
        await asyncio.wait_for(engine.idle(), 20)
        events = [await anext(slow) for _ in range(stream.MERGE_FROM)]
        assert len(text(events)) >= 150
        with pytest.raises(SlowReader):
            await anext(slow)


@FAMILIES
async def test_a_poisoned_sequence_fails_alone(family: Family) -> None:
    """Logits that are not finite end their own sequence; batch mates do not notice."""
    model = WatchedModel()
    async with running(model, family) as engine:
        expected = text(await collect(engine, job(prompt(9))))

        def poison(logits: Tensor) -> Tensor:
            logits = logits.clone()
            if model.batches[-1] == 2:
                logits[0, 5] = math.nan
            return logits

        model.touch = poison
        model.gate.clear()
        bad = asyncio.create_task(collect(engine, LONG))
        await eventually(lambda: engine.snapshot().running == 1)
        good = asyncio.create_task(collect(engine, job(prompt(9))))
        await eventually(lambda: engine.snapshot().queued == 1)
        model.gate.set()
        with pytest.raises(EngineFailure):
            await bad
        assert text(await good) == expected


async def test_a_failing_forward_fails_its_batch_only() -> None:
    """The engine goes on after a forward that raised."""
    model = WatchedModel()
    async with running(model) as engine:
        expected = text(await collect(engine, job()))
        model.touch = _raise
        with pytest.raises(EngineFailure):
            await collect(engine, job())
        model.touch = lambda logits: logits
        assert text(await collect(engine, job())) == expected


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (job(()), InvalidRequest),
        (job(max_new_tokens=0), LimitExceeded),
        (job(prompt(200), 57), LimitExceeded),
        (job(max_new_tokens=2**31 - 1), LimitExceeded),
    ],
)
async def test_impossible_jobs_are_refused(asked: object, error: type[Exception]) -> None:
    """What cannot fit is refused before any compute, and the next call is fine."""
    model = WatchedModel()
    async with running(model) as engine:
        with pytest.raises(error):
            engine.submit(asked)  # type: ignore[arg-type]
        assert model.forwards == 0
        assert text(await collect(engine, job(prompt(200), 56)))


async def test_a_plan_the_family_cannot_follow_fails_alone() -> None:
    """A sequence that cannot start ends with its own error and takes no slot."""
    async with running(WatchedModel()) as engine:
        with pytest.raises(InvalidRequest):
            await collect(engine, job(denoising=None))
        assert text(await collect(engine, job()))


async def test_limits_change_between_steps() -> None:
    """A smaller batch size holds from the next forward on; nobody is cut."""
    model = WatchedModel()
    async with running(model) as engine:
        engine.set_limits(EngineLimits(max_batch_size=1))
        answers = await asyncio.gather(*(collect(engine, job()) for _ in range(3)))
        assert max(model.batches) == 1
        assert len({text(events) for events in answers}) == 1
        engine.set_limits(EngineLimits(max_concurrency=2))
        await asyncio.gather(*(collect(engine, job()) for _ in range(4)))
        assert max(model.batches) == 2


async def test_forwards_keep_to_their_row_budget() -> None:
    """Long prompts are spread over forwards, in turn, rather than put into one."""
    model = WatchedModel()
    async with running(model, limits=EngineLimits(max_forward_rows=64)) as engine:
        model.gate.clear()
        jobs = [asyncio.create_task(collect(engine, job(prompt(60, n), 8))) for n in range(3)]
        await eventually(lambda: engine.snapshot().running + engine.snapshot().queued == 3)
        model.gate.set()
        await asyncio.gather(*jobs)
    assert model.batches[:3] == [1, 1, 1]


async def test_a_long_prompt_stalls_nobody() -> None:
    """Every forward that computes a chunk of a long prompt gives a running answer its token."""
    model, family = WatchedModel(), NextToken(ENDLESS, prefill_chunk=16)
    async with running(model, family) as engine:
        stream = engine.submit(job(prompt(5), 60))
        await anext(stream)
        events = await collect(engine, job(prompt(160, 1), 1))
        chunks = [rows for rows in model.rows if rows > 16]
        await stream.aclose()
    assert finished(events).usage.forward_passes == 10
    assert len(chunks) == 10
    assert set(chunks) == {17}


async def test_draining_refuses_new_work_and_finishes_the_old() -> None:
    """Running and waiting jobs end well; resume takes new ones again."""
    model = WatchedModel(slots=1)
    async with running(model) as engine:
        model.gate.clear()
        old = [asyncio.create_task(collect(engine, job(max_new_tokens=40))) for _ in range(3)]
        await eventually(lambda: engine.snapshot().running + engine.snapshot().queued == 3)
        engine.drain()
        with pytest.raises(Draining):
            engine.submit(job())
        model.gate.set()
        await asyncio.wait_for(engine.idle(), 20)
        assert all([finished(await each) for each in old])
        engine.resume()
        assert text(await collect(engine, job()))


async def test_stopping_ends_what_is_left() -> None:
    """Jobs that run or wait when the engine stops end with Draining."""
    model = WatchedModel(slots=1)
    async with running(model) as engine:
        streams = [engine.submit(LONG), engine.submit(LONG)]
        await eventually(lambda: model.forwards > 0)
        await engine.stop()
        for each in streams:
            with pytest.raises(Draining):
                await _drain(each)


async def test_status_tells_load_and_life() -> None:
    """Running, waiting and pending work are counted; a hanging step shows in its age."""
    model = WatchedModel(slots=1)
    async with running(model) as engine:
        await collect(engine, job())
        quiet = engine.snapshot()
        assert (quiet.running, quiet.queued, quiet.pending_forwards, quiet.busy) == (0, 0, 0, False)
        assert quiet.step_seconds > 0
        model.gate.clear()
        async with engine.submit(LONG), engine.submit(LONG):
            await eventually(lambda: engine.snapshot().running == 1)
            hanging = engine.snapshot()
            assert (hanging.queued, hanging.slots, hanging.busy) == (1, 1, True)
            assert 100 < hanging.pending_forwards <= 400
            await asyncio.sleep(0.1)
            assert engine.snapshot().last_step_at == hanging.last_step_at
        model.gate.set()


async def test_urgent_jobs_overtake() -> None:
    """Of jobs that wait, an interactive one runs before a batch one that came earlier."""
    model = WatchedModel(slots=1)
    order: list[str] = []

    async def solve(name: str, priority: Priority) -> None:
        await collect(engine, job(priority=priority))
        order.append(name)

    async with running(model) as engine, asyncio.TaskGroup() as tasks:
        model.gate.clear()
        tasks.create_task(solve("first", Priority.NORMAL))
        await eventually(lambda: engine.snapshot().running == 1)
        tasks.create_task(solve("batch", Priority.BATCH))
        tasks.create_task(solve("interactive", Priority.INTERACTIVE))
        await eventually(lambda: engine.snapshot().queued == 2)
        model.gate.set()
    assert order == ["first", "interactive", "batch"]


async def test_batch_work_leaves_a_slot_free() -> None:
    """However much offline work there is, an urgent job that comes now runs now."""
    model = WatchedModel(slots=3)
    async with running(model) as engine:
        batch = [
            engine.submit(job(prompt(9, n), 150, priority=Priority.BATCH, arrived=0.0))
            for n in range(6)
        ]
        await anext(batch[0])
        assert engine.snapshot().running == 2
        await asyncio.wait_for(collect(engine, job(max_new_tokens=4)), 10)
        assert engine.snapshot().queued == 4
        for stream in batch:
            await stream.aclose()


async def test_batch_work_runs_where_there_is_one_slot() -> None:
    """A worker with a single slot does offline work as well."""
    async with running(WatchedModel(slots=1)) as engine:
        events = await collect(engine, job(max_new_tokens=4, priority=Priority.BATCH))
    assert finished(events).usage.completion_tokens == 4


async def test_text_never_changes_after_it_was_sent() -> None:
    """Deltas of a diffusion answer appear block by block, in order."""
    async with running(WatchedModel()) as engine:
        events = await collect(engine, job(max_new_tokens=40))
    blocks = [event.block_index for event in events if isinstance(event, Delta)]
    assert blocks == sorted(blocks)
    assert len(blocks) == 6
    assert finished(events).finish_reason is FinishReason.LENGTH


async def _drain(events: EventStream) -> None:
    async for _ in events:
        pass


def _raise(logits: object) -> Tensor:
    raise RuntimeError("broken on purpose")


class _Recording:
    """A family that notes which jobs it opens."""

    def __init__(self, opened: list[Job]) -> None:
        self._opened = opened

    def open(self, asked: Job) -> Sequence:
        self._opened.append(asked)
        return DIFFUSION.open(asked)
