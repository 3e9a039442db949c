"""Forms that break other servers: refused by name, or kept to; never free text with success."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from contextlib import closing
from dataclasses import replace
from typing import Any

import grpc
import pytest

from braid.inference.v1 import inference_pb2 as pb
from services.generation.grammar.compiler import Form
from services.generation.planner import Planner
from services.generation.schema import strict_json
from tests.generation.grammar.generated import validator_of
from tests.generation.serving import Serving, refusal

INVALID = grpc.StatusCode.INVALID_ARGUMENT
FIELD = "constraint.json_schema"
SHORT = pb.Sampling(max_new_tokens=48, temperature=1.5, seed=4)


def schema(value: Any) -> pb.Constraint:
    """A schema as text, or what is to be written as such."""
    return pb.Constraint(json_schema=value if isinstance(value, str) else json.dumps(value))


async def answers(worker: Serving) -> bool:
    """One normal call is answered."""
    return isinstance(await worker.text(prompt="abc", sampling=SHORT), str)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "false",
        '{"type":"strnig"}',
        '{"properties":5}',
        '{"enum":[]}',
        '{"const":"\\ud800"}',
        '{"$ref":"#/$defs/none"}',
    ],
)
async def test_what_is_no_schema_is_refused(random: Serving, text: str) -> None:
    """At intake, unary and streamed, with a pointer; the next call is answered."""
    for call in (random.text, random.pieces):
        assert await refusal(call(prompt="p", constraint=schema(text))) == (INVALID, {FIELD})
    assert await answers(random)


async def test_true_is_any_json(random: Serving) -> None:
    """The schema true: whatever a random model writes is strict JSON."""
    for seed in range(4):
        sampling = pb.Sampling(max_new_tokens=40, temperature=2, seed=seed)
        strict_json(await random.text(prompt="p", constraint=schema("true"), sampling=sampling))


async def test_the_later_of_two_forms_counts(random: Serving) -> None:
    """A message can hold one form: of two on the wire protobuf reads the last, which is kept to."""
    both = schema({"const": 1}).SerializeToString() + pb.Constraint(regex="b").SerializeToString()
    assert await random.text(prompt="p", constraint=pb.Constraint.FromString(both)) == "b"


async def test_nothing_outside_is_read(random: Serving) -> None:
    """References to a server or a file are refused; nobody connects."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        listener.setblocking(False)
        remote = f"http://127.0.0.1:{listener.getsockname()[1]}/x.json"
        for target in (remote, "file:///etc/hostname"):
            call = random.text(prompt="p", constraint=schema({"$ref": target}))
            assert await refusal(call) == (INVALID, {FIELD})
        with pytest.raises(BlockingIOError):
            listener.accept()


@pytest.mark.parametrize(
    "asked",
    [
        {"type": "integer", "minimum": 10, "maximum": 12},
        {"type": "integer", "minimum": -9, "maximum": 30, "multipleOf": 3},
        {"enum": ['a"b', "c\\d", "é\n", "👍", ""]},
        {
            "type": "object",
            "properties": {"cost (€)": {"type": "boolean"}},
            "required": ["cost (€)"],
            "additionalProperties": False,
        },
        {"const": 1.5e308},
        {"const": 9007199254740993},
        {"type": "string", "pattern": "^(x+x+)+y$", "maxLength": 40},
    ],
    ids=lambda asked: next(key for key in reversed(asked)),
)
async def test_odd_schemas_are_kept_to(random: Serving, asked: dict[str, Any]) -> None:
    """Every answer of a random model is valid by the word of an independent validator."""
    for seed in range(3):
        sampling = pb.Sampling(max_new_tokens=48, temperature=2, seed=seed)
        text = await random.text(prompt="p", constraint=schema(asked), sampling=sampling)
        validator_of(asked).validate(strict_json(text))


@pytest.mark.parametrize(
    "asked",
    [
        {"type": "array", "items": {"type": "boolean"}, "uniqueItems": True},
        {"type": "number", "multipleOf": 0.25},
        {"type": "integer", "multipleOf": 3},
    ],
    ids=lambda asked: next(key for key in reversed(asked)),
)
async def test_what_cannot_be_kept_to_is_refused(random: Serving, asked: dict[str, Any]) -> None:
    """A keyword is never half honoured; the next call is answered."""
    call = random.text(prompt="p", constraint=schema(asked))
    assert await refusal(call) == (INVALID, {FIELD})
    assert await answers(random)


async def test_forms_are_compiled_and_judged_off_the_event_loop(
    random: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one is compiled, and while its answer is judged, others are answered."""
    held = {"compile": threading.Event(), "judge": threading.Event()}
    free = {"compile": threading.Event(), "judge": threading.Event()}
    compiled = Planner._form

    def hold(stage: str) -> None:
        held[stage].set()
        assert free[stage].wait(20)

    def slowly(planner: Planner, constraint: Any) -> Form | None:
        form = compiled(planner, constraint)
        if form is None:
            return None
        hold("compile")
        check = form.check

        def judged(text: str) -> bool:
            hold("judge")
            return check(text)

        return replace(form, check=judged)

    monkeypatch.setattr(Planner, "_form", slowly)
    call = asyncio.ensure_future(
        random.text(prompt="p", constraint=pb.Constraint(regex="(x+x+)+y"), sampling=SHORT)
    )
    for stage, event in held.items():
        assert await asyncio.to_thread(event.wait, 20)
        assert await answers(random)
        assert not call.done()
        free[stage].set()
    assert (await call).endswith("y")
