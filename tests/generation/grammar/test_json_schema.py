"""The language of a schema: what it holds, what it refuses, and jsonschema's opinion."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, FormatChecker

from services.generation.grammar.json_schema import schema_language
from services.generation.grammar.language import LanguageTooLarge
from services.generation.schema import BadSchema, read_schema
from tests.generation.grammar.automata import (
    accepts,
    demo_table,
    drawn,
    schema_automaton,
    tokens_of,
)

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer", "minimum": 0, "maximum": 130},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2},
    },
    "required": ["name"],
}
CHAIN = {
    "type": "object",
    "properties": {
        "v": {"type": "integer"},
        "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
    },
    "required": ["v", "next"],
}
SHAPES = {
    "oneOf": [
        {
            "type": "object",
            "properties": {"kind": {"const": kind}, size: {"type": "number"}},
            "required": ["kind", size],
        }
        for kind, size in (("circle", "radius"), ("square", "side"))
    ]
}


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        (PERSON, ['{"name":"a\\"b"}', '{"name":"","age":130}', '{"name":"京","tags":["a","b"]}'],
         ['{"age":1}', '{"name":"x","age":131}', '{"age":1,"name":"x"}', '{"name": "x"}',
          '{"name":"x","more":1}', '{"name":"x","tags":["a","b","a"]}']),
        (CHAIN, ['{"v":1,"next":{"v":2,"next":null}}'], ['{"v":1}', '{"v":1,"next":1}']),
        (SHAPES, ['{"kind":"circle","radius":1.5}', '{"kind":"square","side":2}'],
         ['{"kind":"circle","side":1}', '{"kind":"circle"}']),
        ({"type": ["string", "null"], "maxLength": 2}, ["null", '"ab"', '"\\n京"'], ['"abc"', "1"]),
        ({"allOf": [{"type": "integer", "minimum": 3}, {"maximum": 12, "multipleOf": 2},
                    {"multipleOf": 3}]}, ["6", "12"], ["3", "4", "18"]),
        ({"type": "array", "items": {"type": "boolean"}, "minItems": 2},
         ["[true,false]", "[true,true,true]"], ["[]", "[true]"]),
        ({"type": "array", "prefixItems": [{"type": "integer"}, {"const": "x"}]},
         ['[1,"x"]'], ["[1]", '[1,"x",2]']),
        ({"type": "string", "pattern": "a", "maxLength": 3}, ['"bab"', '"a"'], ['"b"', '"aaaa"']),
        ({"enum": ["a", 1, None, {"k": [1.5]}], "type": ["string", "object"]},
         ['"a"', '{"k":[1.5]}'], ["1", "null"]),
        ({"type": "object", "properties": {k: {"type": "null"} for k in "abc"}},
         ["{}", '{"b":null}', '{"a":null,"c":null}'], ['{"c":null,"a":null}', '{,"a":null}']),
        ({"type": "object", "properties": {'a"\\京': {"const": 0}}, "required": ['a"\\京']},
         ['{"a\\"\\\\京":0}'], ["{}"]),
        ({"properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "integer"}}},
         ['{"a":1}', "{}"], ['{"a":"1"}', "1"]),
        ({"type": "object", "additionalProperties": False}, ["{}"], ['{"a":1}']),
        ({"type": "object"}, ["{}", '{"a":[{"b":0}],"c":1.5}'], ["[]", '{"a":1,}', '{"a":tru}']),
        ({}, ["1", "null", '[["a"]]', '{"a":{"b":0}}'], ["", "[", '[[["a"]]]', "NaN"]),
        ({"additionalProperties": {"type": "integer"}}, ['{"x":1,"y":2}', "{}"], ['{"x":"1"}']),
        ({"type": "array", "maxItems": 1}, ["[]", '["a"]', "[[1]]"], ["[1,2]"]),
        ({"anyOf": [{"maximum": 3}, {"minimum": 8}], "type": "integer"}, ["3", "8"], ["5", '"3"']),
    ],
)  # fmt: skip
def test_documents_of_a_schema(schema: dict[str, Any], good: list[str], bad: list[str]) -> None:
    """Valid documents in their one spelling, and no others."""
    automaton = schema_automaton(schema)
    assert all(accepts(automaton, text) for text in good)
    assert not any(accepts(automaton, text) for text in bad)


@pytest.mark.parametrize(
    ("schema", "exact"), [(PERSON, True), ({"type": "object"}, False), ({"items": {}}, False)]
)
def test_open_objects_are_not_exact(schema: dict[str, Any], *, exact: bool) -> None:
    """Where names are free one may come twice, so answers are judged as well."""
    assert schema_language(schema).exact is exact


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date", ["2024-02-29", "2023-12-31", "2000-02-29"],
         ["2023-02-29", "1900-02-29", "2023-04-31"]),
        ("time", ["23:59:59Z", "00:00:00.5+01:30"], ["24:00:00Z", "12:00:00"]),
        ("date-time", ["2024-02-29T10:00:00Z"], ["2024-02-29 10:00:00Z"]),
        ("uuid", ["123e4567-e89b-12d3-a456-426614174000"], ["123e4567"]),
        ("ipv4", ["127.0.0.1", "255.255.255.255"], ["256.0.0.1", "01.0.0.1", "1.2.3"]),
        ("hostname", ["a", "a-b.example"], ["-a", "a-", "a..b"]),
        ("email", ["a.b+c@example.org"], ["a@b", "@b.de", "a b@c.de"]),
    ],
)  # fmt: skip
def test_formats(name: str, good: list[str], bad: list[str]) -> None:
    """Each is held to, for strings alone."""
    automaton = schema_automaton({"type": "string", "format": name})
    assert all(accepts(automaton, f'"{text}"') for text in good)
    assert not any(accepts(automaton, f'"{text}"') for text in bad)


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"type": "array", "uniqueItems": True, "items": {"type": "string"}}, "/uniqueItems"),
        ({"properties": {"a": {"not": {}}}}, "/properties/a/not"),
        ({"properties": {"a": {"const": 1}}, "required": ["b"]}, "/required"),
        ({"properties": {"a": {"const": 1}}, "minProperties": 1}, "/minProperties"),
        ({"properties": {"a": {"const": 1}}, "maxProperties": 0}, "/maxProperties"),
        ({"type": "array", "items": {"type": "null"}, "contains": {}}, "/contains"),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "/oneOf"),
        ({"type": "string", "pattern": "(?=a)"}, "/pattern"),
        ({"type": "string", "format": "uri"}, "/format"),
        ({"type": "number", "multipleOf": 0.01}, "/multipleOf"),
        ({"type": "integer", "multipleOf": 7}, "/multipleOf"),
        ({"allOf": [{"type": "string", "pattern": "a"}, {"pattern": "b"}]}, "/pattern"),
        ({"if": {}, "type": "string"}, "/if"),
        ({"nullable": True, "type": "string"}, "/nullable"),
        ({"type": "integer", "minimum": 3, "maximum": 1}, "/: nothing"),
        ({"allOf": [{"type": "string"}, {"type": "integer"}]}, "/: nothing"),
        ({"$ref": "#"}, "/: nothing"),
        ({"properties": {"a": {"$ref": "#"}}, "required": ["a"]}, "/: nothing"),
    ],
)  # fmt: skip
def test_what_cannot_be_kept_to_is_refused_by_name(schema: dict[str, Any], pointer: str) -> None:
    """With a pointer to the keyword; a schema that nothing satisfies is refused as well."""
    with pytest.raises(BadSchema) as caught:
        schema_language(read_schema(json.dumps(schema)))
    assert str(caught.value).startswith(pointer)


def test_schema_that_multiplies_is_bounded() -> None:
    """Properties that refer to two of the next level each end in a refusal, soon."""
    levels = {
        f"d{i}": {"properties": {k: {"$ref": f"#/$defs/d{i + 1}"} for k in "ab"}} for i in range(40)
    }
    schema = {"$defs": levels | {"d40": {"type": "null"}}, "$ref": "#/$defs/d0"}
    with pytest.raises((BadSchema, LanguageTooLarge)):
        schema_automaton(schema)


leaves = st.one_of(
    st.fixed_dictionaries({"type": st.just("string")}, optional={
        "minLength": st.integers(0, 2), "maxLength": st.integers(2, 5)}),
    st.fixed_dictionaries({"type": st.just("string"), "pattern": st.sampled_from(
        ["^[a-z]+$", "^\\d{2,3}$", "x|é", "^[^\"]*$"])}),
    st.fixed_dictionaries({"type": st.just("string"), "format": st.sampled_from(
        ["date", "uuid", "ipv4", "email"])}),
    st.fixed_dictionaries({"type": st.sampled_from(["integer", "number"])}, optional={
        "minimum": st.integers(-20, 5), "exclusiveMaximum": st.integers(6, 300)}),
    st.just({"type": ["boolean", "null"]}),
    st.builds(lambda values: {"enum": values}, st.lists(
        st.text(max_size=4) | st.integers(-9, 9), min_size=1, max_size=4)),
)  # fmt: skip
keys = st.text(st.sampled_from('abc_é京"\\ '), min_size=1, max_size=4)


def _object(properties: dict[str, Any], closed: bool, needed: int) -> dict[str, Any]:
    required = list(properties)[:needed]
    return {"type": "object", "properties": properties, "required": required} | (
        {"additionalProperties": False} if closed else {}
    )


def _wider(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    objects = st.dictionaries(keys, inner, min_size=1, max_size=4)
    return st.one_of(
        st.builds(_object, objects, st.booleans(), st.integers(0, 4)),
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}, optional={
            "minItems": st.integers(0, 2), "maxItems": st.integers(2, 4)}),
        st.builds(lambda a, b: {"anyOf": [a, b]}, inner, inner),
    )  # fmt: skip


generated_schemas = st.recursive(leaves, _wider, max_leaves=8)


@given(generated_schemas, st.integers(0, 10**6))
@settings(max_examples=120, deadline=None)
def test_whatever_is_written_validates(schema: dict[str, Any], seed: int) -> None:
    """Random walks through the automaton, with every budget, satisfy an independent validator."""
    automaton, table, rng = tokens_of(schema), demo_table(), Random(seed)
    validator = Draft202012Validator(schema, format_checker=FormatChecker())
    for spare in (0, 1, 5, 40):
        text = drawn(automaton, table, rng, automaton.shortest + spare).decode()
        validator.validate(json.loads(text))


@given(generated_schemas, st.data())
@settings(max_examples=60, deadline=None)
def test_valid_documents_can_be_written(schema: dict[str, Any], data: st.DataObject) -> None:
    """What one automaton wrote is accepted byte for byte, so no token path is lost to pruning."""
    table = demo_table()
    automaton = tokens_of(schema)
    rng = Random(data.draw(st.integers(0, 99)))
    text = drawn(automaton, table, rng, automaton.shortest + 40)
    assume(len(text) < 400)
    state, left = 0, len(text) + 1
    for token in [*table.encode(text.decode()), table.eos_id]:
        following = automaton.follow(state, token, left)
        assert following is not None
        state, left = following, left - 1
    assert state == automaton.end
