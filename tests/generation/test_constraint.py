"""JSON Schema: which are no sound ones, what an answer must be, how long it is looked at."""

from __future__ import annotations

import json
import socket
import time
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from services.generation.constraint import CHECK_S, SchemaCheck
from services.generation.schema import BadSchema, read_schema


def compiled(schema: str) -> SchemaCheck:
    check = SchemaCheck(read_schema(schema))
    check.probe()
    return check


def refusal(schema: str) -> str:
    with pytest.raises(BadSchema) as caught:
        compiled(schema)
    return str(caught.value)


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ("", "/"),
        ("{", "/"),
        ("[]", "/"),
        ("false", "/"),
        ("12", "/"),
        ('{"type":"strnig"}', "/type"),
        ('{"properties":5}', "/properties"),
        ('{"properties":{"a":{"enum":[]}}}', "/properties/a/enum"),
        ('{"enum":[]}', "/enum"),
        ('{"const":"\\ud800"}', "/"),
        ('{"const":NaN}', "/"),
        ('{"type":"string","type":"number"}', "/"),
        ('{"pattern":"("}', "/pattern"),
        ('{"$ref":"#/$defs/none"}', "/$ref"),
        ('{"items":{"$ref":"#/$defs/none"}}', "/items/$ref"),
        ('{"patternProperties":{"a":{}}}', "/patternProperties"),
        ('{"items":{"$id":"x"}}', "/items/$id"),
        ('{"$schema":"http://json-schema.org/draft-07/schema#"}', "/$schema"),
        ('{"$ref":"#"}', "/"),
        ('{"anyOf":[{"$ref":"#"}]}', "/"),
        ("[" * 100_000, "/"),
        ('{"items":' * 100 + "{}" + "}" * 100, "/items"),
    ],
)
def test_schema_is_refused_with_a_pointer(schema: str, pointer: str) -> None:
    """A schema that cannot be kept to is refused at intake, with a pointer to the fault."""
    assert refusal(schema).startswith(pointer)


def test_remote_reference_is_never_followed() -> None:
    """References out of the schema are refused without a connection or a read."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        listener.settimeout(0.2)
        port = listener.getsockname()[1]
        for target in (f"http://127.0.0.1:{port}/x.json", "file:///etc/hostname", "other.json"):
            assert refusal(json.dumps({"items": {"$ref": target}})).startswith("/items/$ref")
            assert refusal(json.dumps({"$dynamicRef": target})).startswith("/$dynamicRef")
        with pytest.raises(TimeoutError):
            listener.accept()


@pytest.mark.parametrize(
    "schema",
    [
        '{"properties":{"$ref":{"type":"string"},"enum":{},"pattern":{},"patternProperties":{}}}',
        '{"$defs":{"n":{"properties":{"next":{"$ref":"#/$defs/n"}}}},"$ref":"#/$defs/n"}',
        '{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object"}',
        '{"pattern":"^\\\\p{L}+$"}',
        '{"const":{"$ref":"http://x/"}}',
    ],
)
def test_sound_schema_is_taken(schema: str) -> None:
    """Names that look like keywords, recursion and Unicode patterns are no faults."""
    assert compiled(schema)


def test_true_takes_any_json_but_only_json() -> None:
    """The schema true means any JSON value."""
    check = compiled("true")
    assert check.accepts(' {"a": [1, null]} ')
    assert not check.accepts("free text")
    assert not check.accepts("")


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"minimum": 10, "maximum": 12}, "11", "13"),
        ({"multipleOf": 3}, "9", "10"),
        ({"uniqueItems": True}, "[1,2]", "[1,1]"),
        ({"enum": ['a"b', "c\\d", "é\n", "👍", ""]}, '"👍"', '"x"'),
        ({"required": ["cost (€)"]}, '{"cost (€)":1}', "{}"),
        ({"const": 9007199254740993}, "9007199254740993", "9007199254740992"),
        ({"additionalProperties": False}, "{}", '{"a":1}'),
        ({"pattern": "^[a-z]+$"}, '"abc"', '"a1"'),
        ({"multipleOf": 0.25}, "0.5", "0.3"),
        ({}, "1e5", "NaN"),
        ({}, "{}", '{"a":1,"a":2}'),
        ({}, '"x"', '"\\ud800"'),
        ({}, "[]", "[" * 100_000),
    ],
)
def test_answer_must_conform(schema: dict[str, object], good: str, bad: str) -> None:
    """Only strict JSON that the schema accepts passes."""
    check = compiled(json.dumps(schema))
    assert check.accepts(good)
    assert not check.accepts(bad)


def test_numbers_at_the_edge_never_raise() -> None:
    """A number that overflows the check is an answer like any other."""
    assert isinstance(compiled('{"multipleOf":0.25}').accepts("1.5e308"), bool)
    assert not compiled('{"type":"integer"}').accepts("9" * 10_000)


@pytest.mark.parametrize("pattern", ["(x+x+)+y", "^(a|a)*$", "^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_backtracking_pattern_is_bounded(pattern: str) -> None:
    """A pattern that backtracks without end costs at most the time of one check."""
    check = compiled(json.dumps({"pattern": pattern}))
    started = time.monotonic()
    check.accepts(json.dumps("x" * 40 + "a" * 40 + "!"))
    assert time.monotonic() - started < 3 * CHECK_S


def test_schema_that_multiplies_is_bounded() -> None:
    """References that double at each level end at intake, in bounded time."""
    levels = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(30)}
    schema = {"$defs": levels | {"d30": {}}, "$ref": "#/$defs/d0"}
    started = time.monotonic()
    assert refusal(json.dumps(schema))
    assert time.monotonic() - started < 5 * CHECK_S


values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=8,
)
schemas = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["string", "integer", "object", "array", "null"]),
        "minimum": st.integers(-5, 5),
        "minLength": st.integers(0, 3),
        "required": st.lists(st.sampled_from("ab"), unique=True),
        "maxItems": st.integers(0, 3),
        "const": values,
    },
)


@given(schemas, values)
@settings(max_examples=80, deadline=None)
def test_agrees_with_an_independent_validator(schema: dict[str, object], value: object) -> None:
    """The check says what a plain Draft 2020-12 validator says."""
    expected = Draft202012Validator(schema).is_valid(value)
    assert compiled(json.dumps(schema)).accepts(json.dumps(value)) is expected
