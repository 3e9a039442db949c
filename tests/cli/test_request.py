"""Options of a command become the request that is sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer

from braid.inference.v1 import inference_pb2 as inference
from services.cli.names import PriorityName, TaskName
from services.cli.request import build_request, parse_pairs, read_schema
from services.cli.request_options import RequestOptions


def no_stdin() -> str:
    raise AssertionError("standard input was read")


def build(options: RequestOptions) -> inference.GenerateRequest:
    return build_request(options, no_stdin)


def test_prompt_alone_sets_nothing_else() -> None:
    """What is not given stays unset, so that the server's defaults hold."""
    assert build(RequestOptions(prompt="hi")) == inference.GenerateRequest(prompt="hi")


@pytest.mark.parametrize("given", [None, "-"])
def test_prompt_comes_from_stdin(given: str | None) -> None:
    """Without a prompt, or with '-', standard input is the prompt."""
    request = build_request(RequestOptions(prompt=given), lambda: "piped")
    assert request.prompt == "piped"


def test_empty_prompt_is_sent_as_it_is() -> None:
    """An empty prompt is the server's to refuse; standard input is not read for it."""
    assert build(RequestOptions(prompt="")).WhichOneof("input") == "prompt"


def test_prefix_alone_is_an_infill() -> None:
    """A gap needs text on one side only."""
    assert build(RequestOptions(prefix="def f(")).infill == inference.Infill(prefix="def f(")


def test_edit_takes_text_and_instruction() -> None:
    """Both parts of an edit are sent."""
    request = build(RequestOptions(edit_text="a b", instruction="drop b"))
    assert request.edit == inference.Edit(text="a b", instruction="drop b")


@pytest.mark.parametrize(
    "options",
    [
        RequestOptions(prompt="x", prefix="y"),
        RequestOptions(prefix="x", edit_text="y", instruction="z"),
        RequestOptions(edit_text="x"),
        RequestOptions(instruction="x"),
        RequestOptions(prompt="x", label=["no-equals"]),
        RequestOptions(prompt="x", label=["a=1", "a=2"]),
        RequestOptions(prompt="x", latency_budget=float("nan")),
        RequestOptions(prompt="x", latency_budget=1e30),
        RequestOptions(prompt="\udcff"),
        RequestOptions(prompt="x", model="\udcff"),
        RequestOptions(prompt="x", schema="{}", regex="a"),
        RequestOptions(prompt="x", choice=["a"], template="{{gap:1}}"),
    ],
)
def test_contradictions_are_usage_errors(options: RequestOptions) -> None:
    """What cannot be put into a request is refused before anything is sent."""
    with pytest.raises(typer.BadParameter):
        build(options)


def test_every_option_reaches_its_field() -> None:
    """Each option lands in the field it is named after."""
    request = build(
        RequestOptions(
            prompt="x",
            task=TaskName.ACTION_CONTROL,
            model="m",
            max_new_tokens=0,
            temperature=0.5,
            seed=2**63 - 1,
            stop=["a", "b"],
            max_steps=3,
            threshold=0.5,
            strategy="threshold",
            think=False,
            priority=PriorityName.BATCH,
            latency_budget=0.25,
            label=["session=7", "x="],
            schema="{}",
        )
    )
    expected = inference.GenerateRequest(
        prompt="x",
        task=inference.TASK_ACTION_CONTROL,
        model="m",
        sampling=inference.Sampling(
            max_new_tokens=0, temperature=0.5, seed=2**63 - 1, stop=["a", "b"]
        ),
        diffusion=inference.Diffusion(max_steps=3, confidence_threshold=0.5, strategy="threshold"),
        thinking=inference.Thinking(enabled=False),
        priority=inference.PRIORITY_BATCH,
        labels={"session": "7", "x": ""},
        constraint=inference.Constraint(json_schema="{}"),
    )
    expected.latency_budget.FromMilliseconds(250)
    assert request == expected


@pytest.mark.parametrize(
    ("options", "constraint"),
    [
        ({"regex": "a+"}, inference.Constraint(regex="a+")),
        (
            {"choice": ["yes", "no"]},
            inference.Constraint(choice=inference.Choice(options=["yes", "no"])),
        ),
        ({"template": "a {{gap:2}}"}, inference.Constraint(template="a {{gap:2}}")),
    ],
)
def test_every_form_reaches_the_constraint(
    options: dict[str, Any], constraint: inference.Constraint
) -> None:
    """Each option of a form sets its own member."""
    assert build(RequestOptions(prompt="x", **options)).constraint == constraint


@pytest.mark.parametrize("schema", ["{}", ' {"type": "object"}', "true", "false", "[1]"])
def test_schema_given_inline(schema: str) -> None:
    """What looks like JSON is the schema itself."""
    assert read_schema(schema) == schema


def test_schema_from_file(tmp_path: Path) -> None:
    """Anything else names the schema's file."""
    (tmp_path / "s.json").write_text('{"a": 1}')
    assert read_schema(str(tmp_path / "s.json")) == '{"a": 1}'


@pytest.mark.parametrize("content", [None, b"\xff\xfe\xff"])
def test_unreadable_schema_file_is_a_usage_error(tmp_path: Path, content: bytes | None) -> None:
    """A schema file that is missing or not text is named."""
    path = tmp_path / "s.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(typer.BadParameter, match=r"s\.json"):
        read_schema(str(path))


def test_pairs_keep_further_equal_signs() -> None:
    """Only the first equal sign parts key and value."""
    assert parse_pairs(["a=b=c"], "--label") == {"a": "b=c"}
