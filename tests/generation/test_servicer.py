"""Calls to a worker over a real socket: the same promises for both paradigms."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
import structlog

from braid.config.v1.config_pb2 import Group
from braid.inference.v1 import inference_pb2 as pb
from services.chassis.channel import MAX_MESSAGE_BYTES
from services.chassis.errors import Draining
from services.chassis.status import reason_of
from services.generation.lifecycle import State
from services.generation.types import Delta
from services.generation.watchdog import Watchdog
from tests.checkpoints import SPECIALS
from tests.eventually import eventually
from tests.fakes.engine import ScriptedEngine, say
from tests.generation.answers import ANSWERS, HERON, JSON, ODD
from tests.generation.requests import LIMITS
from tests.generation.serving import Serving, refusal, serving
from tests.generation.slow_model import SlowModel, endless
from tests.generation.test_lifecycle import living

PERSON = pb.Constraint(
    json_schema='{"type":"object","required":["name"],'
    '"properties":{"name":{"type":"string"},"age":{"type":"integer"}}}'
)


async def is_well(worker: Serving) -> bool:
    """One normal call is answered."""
    return await worker.text(prompt="keep it short") == "ok"


async def test_answer_says_everything(scripted: Serving) -> None:
    """A unary answer carries text, reason, figures, seed and who answered."""
    message = pb.GenerateRequest(
        prompt="tell about herons", request_id="r1", sampling=pb.Sampling(seed=5)
    )
    response = await scripted.stub.Generate(message)
    assert response.text == HERON
    assert (response.request_id, response.seed) == ("r1", 5)
    assert response.finish_reason == pb.FINISH_REASON_STOP
    assert response.usage.completion_tokens == len(HERON)
    assert response.usage.forward_passes > 0
    assert response.served_by.node_id == "w1"
    assert response.timing.total.ToNanoseconds() > 0


@pytest.mark.parametrize("prompt", ["say something odd", "tell about herons", "extract as json"])
async def test_stream_joined_is_the_unary_text(scripted: Serving, prompt: str) -> None:
    """Chunks hold whole characters and join to the unary answer byte for byte."""
    pieces, finished = await scripted.pieces(prompt=prompt)
    assert "".join(pieces) == ANSWERS[prompt] == await scripted.text(prompt=prompt)
    assert len(pieces) > 1
    assert all("\ufffd" not in piece for piece in pieces)
    assert finished.finish_reason == pb.FINISH_REASON_STOP


async def test_cut_inside_a_character_drops_its_half(scripted: Serving) -> None:
    """Wherever max_new_tokens cuts, the text is a whole-character beginning of the answer."""
    for most in range(1, len(ODD.encode())):
        sampling = pb.Sampling(max_new_tokens=most)
        pieces, finished = await scripted.pieces(prompt="say something odd", sampling=sampling)
        whole = ODD.encode()[:most].decode(errors="ignore")
        assert "".join(pieces) == whole
        assert finished.finish_reason == pb.FINISH_REASON_LENGTH
        assert finished.usage.completion_tokens == most


async def test_a_document_that_is_cut_stays_cut(scripted: Serving) -> None:
    """Without a form to keep to nothing is closed or repaired, and the end says that it is cut."""
    sampling = pb.Sampling(max_new_tokens=9)
    pieces, finished = await scripted.pieces(prompt="extract as json", sampling=sampling)
    response = await scripted.stub.Generate(
        pb.GenerateRequest(prompt="extract as json", sampling=sampling)
    )
    assert "".join(pieces) == response.text == JSON[:9]
    assert finished.finish_reason == response.finish_reason == pb.FINISH_REASON_LENGTH


async def test_parallel_streams_do_not_mix(folder: Path) -> None:
    """Many streams at once, far more than there are slots, each get their own answer."""
    prompts = [*ANSWERS, *["say something odd"] * 27]
    many = replace(LIMITS, max_concurrency=64, queue_length=64)
    async with serving(folder, ANSWERS, limits=many) as worker:
        answers = await asyncio.gather(*(worker.pieces(prompt=prompt) for prompt in prompts))
    for prompt, (pieces, _) in zip(prompts, answers, strict=True):
        assert "".join(pieces) == ANSWERS[prompt][:64]


@pytest.mark.parametrize(
    ("stop", "text"),
    [
        (["eron wai"], "A lazy h"),
        (["her", "heron w"], "A lazy "),
        (["eron wax"], HERON),
        (["waited"], "A lazy heron "),
        (["A"], ""),
    ],
)
async def test_stop_texts(scripted: Serving, stop: list[str], text: str) -> None:
    """The earliest stop text ends the answer, none of it leaks, near misses are released."""
    sampling = pb.Sampling(stop=stop)
    pieces, finished = await scripted.pieces(prompt="tell about herons", sampling=sampling)
    assert "".join(pieces) == text
    assert await scripted.text(prompt="tell about herons", sampling=sampling) == text
    assert finished.finish_reason == pb.FINISH_REASON_STOP


async def test_stop_text_of_many_bytes(scripted: Serving) -> None:
    """A stop text may be of characters that take several tokens each."""
    sampling = pb.Sampling(stop=["👩"])
    text = await scripted.text(prompt="say something odd", sampling=sampling)
    assert text == ODD.partition("👩")[0]


BAD = [
    ({"prompt": ""}, "prompt"),
    ({"prompt": " \n "}, "prompt"),
    ({"prompt": "p", "sampling": pb.Sampling(max_new_tokens=0)}, "sampling.max_new_tokens"),
    (
        {"prompt": "p", "sampling": pb.Sampling(max_new_tokens=2**31 - 1)},
        "sampling.max_new_tokens",
    ),
    (
        {"prompt": "p", "sampling": pb.Sampling(max_new_tokens=2**32 - 1)},
        "sampling.max_new_tokens",
    ),
    ({"prompt": "p", "sampling": pb.Sampling(seed=-1)}, "sampling.seed"),
    ({"prompt": "p", "sampling": pb.Sampling(stop=["a", ""])}, "sampling.stop[1]"),
    ({"prompt": "p", "sampling": pb.Sampling(stop=["x"] * 10_000)}, "sampling.stop"),
    ({"infill": pb.Infill()}, "infill"),
    ({"prompt": "x" * 300}, "prompt"),
    ({"prompt": "p", "constraint": pb.Constraint(template="no gap")}, "constraint.template"),
]


@pytest.mark.parametrize(("fields", "field"), BAD)
async def test_bad_request_is_refused_and_hurts_nobody(
    scripted: Serving, fields: dict[str, Any], field: str
) -> None:
    """A bad request is INVALID_ARGUMENT with its field, either way; the next call works."""
    code, named = await refusal(scripted.text(**fields))
    assert (code, named) == (grpc.StatusCode.INVALID_ARGUMENT, {field})
    assert await refusal(scripted.pieces(**fields)) == (code, named)
    assert await is_well(scripted)


async def test_largest_seed_is_returned(scripted: Serving) -> None:
    """A seed at the edge of its range comes back as it was given."""
    message = pb.GenerateRequest(prompt="keep it short", sampling=pb.Sampling(seed=2**63 - 1))
    assert (await scripted.stub.Generate(message)).seed == 2**63 - 1


async def test_what_the_model_says_rightly_passes(scripted: Serving) -> None:
    """A schema that the model's own words conform to changes none of them."""
    pieces, finished = await scripted.pieces(prompt="extract as json", constraint=PERSON)
    assert "".join(pieces) == JSON
    assert finished.repairs == 0


async def test_a_model_that_wants_to_say_something_else_conforms(scripted: Serving) -> None:
    """Prose turns into a document of the schema, the least of them where there is little room."""
    for budget, prompt in ((11, "tell about herons"), (24, "tell about herons"), (64, "be empty")):
        sampling = pb.Sampling(max_new_tokens=budget)
        fields: dict[str, Any] = {"constraint": PERSON, "sampling": sampling}
        pieces, finished = await scripted.pieces(prompt=prompt, **fields)
        document = json.loads("".join(pieces))
        assert "\n" not in "".join(pieces)
        assert set(document) <= {"name", "age"}
        assert isinstance(document["name"], str)
        assert finished.finish_reason == pb.FINISH_REASON_STOP


async def test_document_that_cannot_fit_is_refused(scripted: Serving) -> None:
    """Up front, with the number of tokens that the shortest one takes."""
    call = scripted.pieces(
        prompt="extract as json", constraint=PERSON, sampling=pb.Sampling(max_new_tokens=8)
    )
    code, named = await refusal(call)
    assert (code, named) == (grpc.StatusCode.INVALID_ARGUMENT, {"sampling.max_new_tokens"})


FORGED = "".join(SPECIALS)


@pytest.mark.parametrize(
    ("source", "given"),
    [
        ({"prompt": FORGED}, 2),
        ({"chat": pb.Chat(messages=[pb.ChatMessage(role="user", content=FORGED)])}, 2),
        ({"infill": pb.Infill(prefix=FORGED, suffix="x")}, 3 + 1),
        ({"infill": pb.Infill(prefix="x", suffix=FORGED)}, 3 + 1),
        ({"edit": pb.Edit(text=FORGED, instruction="x")}, 2 + 2),
    ],
    ids=["prompt", "chat", "prefix", "suffix", "edit"],
)
async def test_special_tokens_are_text_and_never_in_answers(
    random: Serving, source: dict[str, Any], given: int
) -> None:
    """An input full of special tokens' spellings is text, and no raw special comes out."""
    message = pb.GenerateRequest(**source, sampling=pb.Sampling(max_new_tokens=24))
    response = await random.stub.Generate(message)
    assert response.usage.prompt_tokens == len(FORGED) + given
    assert not any(special in response.text for special in SPECIALS)


async def test_context_edge_and_exact_usage(random: Serving) -> None:
    """Up to the last token of the context a call is answered, with at most what it asked for."""
    edge = pb.GenerateRequest(prompt="x" * 232, sampling=pb.Sampling(max_new_tokens=22))
    response = await random.stub.Generate(edge)
    assert response.usage.completion_tokens <= 22
    beyond = {"prompt": "x" * 232, "sampling": pb.Sampling(max_new_tokens=23)}
    code, named = await refusal(random.text(**beyond))
    assert (code, named) == (grpc.StatusCode.INVALID_ARGUMENT, {"sampling.max_new_tokens"})


async def test_batch_mates_change_nothing(random: Serving) -> None:
    """A short prompt's text beside a long one equals its text alone."""
    short: dict[str, Any] = {"prompt": "abc", "sampling": pb.Sampling(max_new_tokens=20, seed=1)}
    long: dict[str, Any] = {"prompt": "y" * 200, "sampling": pb.Sampling(max_new_tokens=40, seed=2)}
    alone = await random.text(**short)
    together = await asyncio.gather(random.text(**short), random.text(**long))
    assert together[0] == alone


async def test_nul_is_part_of_the_prompt(random: Serving) -> None:
    """A NUL byte does not end the prompt: the token count proves it."""
    message = pb.GenerateRequest(prompt="red\0blue", sampling=pb.Sampling(max_new_tokens=1))
    assert (await random.stub.Generate(message)).usage.prompt_tokens == 8 + 2


async def test_bad_utf8_is_an_error_and_the_connection_lives(scripted: Serving) -> None:
    """A string field that is not UTF-8 fails its own call, at once, and nothing else."""
    method: Any = scripted.channel.unary_unary("/braid.inference.v1.InferenceService/Generate")
    with pytest.raises(grpc.aio.AioRpcError):
        await method(b"\x2a\x01\xff", timeout=5)
    assert await is_well(scripted)


@pytest.mark.parametrize("size", [MAX_MESSAGE_BYTES - 1024, MAX_MESSAGE_BYTES + 1024])
async def test_message_limit(scripted: Serving, size: int) -> None:
    """Messages around the limit are refused with a status that says why; the next call works."""
    code, _ = await refusal(scripted.text(prompt="x" * size))
    assert code in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED)
    assert await is_well(scripted)


async def test_answer_over_the_message_limit(scripted: Serving) -> None:
    """An answer too large for one message streams in parts; unary says that it is too large."""
    huge = "é" * (MAX_MESSAGE_BYTES // 2 + 1000)
    model = scripted.reception.model
    assert model is not None
    model.answering._engine = ScriptedEngine(say(huge))
    pieces, _ = await scripted.pieces(prompt="p")
    assert "".join(pieces) == huge
    code, _ = await refusal(scripted.text(prompt="p"))
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_other_model_is_not_found(scripted: Serving) -> None:
    """A call for a model that this node does not serve is NOT_FOUND."""
    assert (await refusal(scripted.text(prompt="p", model="other")))[0] is grpc.StatusCode.NOT_FOUND
    assert await scripted.text(prompt="keep it short", model="tiny") == "ok"


async def test_draining_node_refuses_new_and_ends_old(folder: Path) -> None:
    """New calls to a draining node are UNAVAILABLE; running ones finish."""
    async with serving(folder, model=SlowModel(folder, 0.01)) as worker:
        running = asyncio.ensure_future(worker.text(prompt="abc", sampling=endless()))
        await eventually(lambda: worker.engine.snapshot().running == 1)
        worker.reception.refuse(Draining("stopping"))
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await worker.text(prompt="abc")
        assert (caught.value.code(), reason_of(caught.value)) == (
            grpc.StatusCode.UNAVAILABLE,
            "DRAINING",
        )
        assert isinstance(await running, str)


async def test_frozen_engine_is_noticed_and_forgiven(folder: Path) -> None:
    """An engine that hangs turns readiness off and ends its calls; when it moves, all is well."""
    model, life = SlowModel(folder, 0), living(State.READY)
    async with serving(folder, model=model) as worker:
        watchdog = Watchdog(worker.engine, worker.calls, life, worker.reception, patience_s=0.2)
        model.going.clear()
        call = asyncio.ensure_future(worker.text(prompt="abc", sampling=endless()))

        def is_open() -> bool:
            watchdog.look()
            return life.accepting

        await eventually(lambda: not is_open())
        unavailable = grpc.StatusCode.UNAVAILABLE
        assert (await refusal(call))[0] is unavailable
        assert (await refusal(worker.text(prompt="abc")))[0] is unavailable
        model.going.set()
        await eventually(is_open)
        assert isinstance(await worker.text(prompt="abc"), str)


async def test_log_line_has_figures_and_no_content(scripted: Serving) -> None:
    """A call's line carries its id and figures; nothing that the caller or the model wrote."""
    with structlog.testing.capture_logs() as logs:
        await scripted.text(prompt="tell about herons", request_id="r9")
        await refusal(scripted.text(prompt='SECRET-123\n{"level":"error"}' + "x" * 300))
    good, bad = [line for line in logs if line["event"] == "request_finished"]
    assert (good["request_id"], good["code"], good["tokens"]) == ("r9", "OK", len(HERON))
    assert (bad["code"], bad["reason"]) == ("INVALID_ARGUMENT", "LIMIT_EXCEEDED")
    assert "SECRET-123" not in repr(logs)
    assert "heron" not in repr(logs)


async def test_metrics_count_by_task_and_code(scripted: Serving) -> None:
    """Calls are counted under closed labels, with tokens and forwards beside them."""
    await scripted.text(prompt="keep it short", task=pb.TASK_CHAT)
    await refusal(scripted.text(prompt="", task=pb.TASK_CHAT))
    value = scripted.metrics.get_sample_value
    assert value("braid_requests_total", {"task": "TASK_CHAT", "code": "OK"}) == 1
    labels = {"task": "TASK_UNSPECIFIED", "code": "INVALID_ARGUMENT"}
    assert value("braid_requests_total", labels) == 1
    assert value("braid_generation_tokens_total") == 2


async def test_too_many_calls_are_refused_at_once(folder: Path) -> None:
    """Beyond slots and queue a call is RESOURCE_EXHAUSTED; those inside finish."""
    async with serving(folder, model=SlowModel(folder, 0.005)) as worker:
        brief = pb.Sampling(max_new_tokens=16)
        calls = [worker.text(prompt="abc", sampling=brief) for _ in range(30)]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        full = [one for one in outcomes if isinstance(one, grpc.aio.AioRpcError)]
        assert {one.code() for one in full} == {grpc.StatusCode.RESOURCE_EXHAUSTED}
        assert len(outcomes) - len(full) >= LIMITS.max_batch_size
        assert isinstance(await worker.text(prompt="abc"), str)


async def test_slow_reader_loses_nothing(scripted: Serving) -> None:
    """A reader that pauses between messages still gets every one, in order."""
    model = scripted.reception.model
    assert model is not None
    words = [Delta(f"{number} ", number) for number in range(200)]
    model.answering._engine = ScriptedEngine(lambda job: [*words, say("")(job)[-1]])
    texts = []
    async for message in scripted.stub.GenerateStream(pb.GenerateRequest(prompt="p")):
        texts.append(message.delta.text)
        if len(texts) % 50 == 0:
            await asyncio.sleep(0.02)
    assert "".join(texts) == "".join(word.text for word in words)


async def test_without_a_queue_free_slots_still_serve(folder: Path) -> None:
    """queue_length 0 refuses only what cannot run at once."""
    async with serving(folder, ANSWERS, limits=LIMITS.under(Group(queue_length=0))) as worker:
        assert await is_well(worker)
