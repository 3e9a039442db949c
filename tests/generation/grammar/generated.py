"""Schemas as callers write them, from a seed: nested, bounded, optional, with keys of any script.

Some ask for one keyword that the service refuses, as callers do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import time
from random import Random
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker

Schema = dict[str, Any]
Writer = Callable[[Random, int], Schema]
"""Draws a schema with at most so many levels below."""

KEYS = (
    "name", "id", "age", "city", "price", "tags", "state", "e_mail", "größe", "naïve", "straße",
    "имя", "цена", "città", "名前", "数量", "价格", "이름", "ώρα", "השם", "emoji 😀", "a/b", 'q"',
)  # fmt: skip
WORDS = ("red", "green", "open", "closed", "new", "héllo", "да", "高", "N/A", 'say "x"')
PATTERNS = ("^[A-Z]{2}[0-9]{3}$", "^[a-z_]+$", "^\\d{2}:\\d{2}$", "^(yes|no)$")
FORMATS = ("date", "time", "ipv4", "email", "uuid")
UNSUPPORTED: dict[str, Schema] = {
    "uniqueItems": {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
    "contains": {"type": "array", "items": {"type": "integer"}, "contains": {"const": 1}},
    "not": {"type": "string", "not": {"const": "none"}},
    "if": {"type": "integer", "if": {"minimum": 3}, "then": {"maximum": 9}},
    "patternProperties": {"type": "object", "patternProperties": {"^x": {"type": "string"}}},
    "propertyNames": {"type": "object", "propertyNames": {"maxLength": 3}},
    "dependentRequired": {"type": "object", "dependentRequired": {"a": ["b"]}},
    "format": {"type": "string", "format": "uri"},
    "pattern": {"type": "string", "pattern": "^(?!x)"},
    "multipleOf": {"type": "number", "multipleOf": 0.01},
    "oneOf": {"oneOf": [{"type": "integer"}, {"type": "number"}]},
}
"""A schema for each keyword that is refused, at least with this value."""


def generated(count: int, seed: int, unsupported: float = 0.0) -> Iterator[tuple[Schema, str]]:
    """``count`` schemas, each with the keyword that must be refused, empty where none must be.

    ``unsupported`` is the share of schemas that have one.
    """
    rng = Random(seed)
    for _ in range(count):
        schema = _object(rng, depth=rng.choice((1, 2, 2, 3)))
        schema["$defs"] = {"common": _value(rng, 0)}
        keyword = rng.choice(list(UNSUPPORTED)) if rng.random() < unsupported else ""
        if keyword:
            schema["properties"] |= {"extra": UNSUPPORTED[keyword]}
        yield schema, keyword


def validator_of(schema: Schema) -> Draft202012Validator:
    """An independent judge of documents, formats included."""
    return Draft202012Validator(schema, format_checker=_FORMATS)


_FORMATS = FormatChecker(("date", "ipv4", "email", "uuid"))


@_FORMATS.checks("time", raises=ValueError)
def _is_time(value: object) -> bool:
    """The checker's own, without a package more, is that of draft 3: a time without offset."""
    return not isinstance(value, str) or time.fromisoformat(value).tzinfo is not None


def _value(rng: Random, depth: int) -> Schema:
    """Any schema with at most ``depth`` levels below."""
    kinds: list[Writer] = [_string, _string, _number, _number, _listed, _plain]
    if depth:
        kinds += [_object, _array, _any, _shared, _tagged]
    return rng.choice(kinds)(rng, depth - 1)


def _object(rng: Random, depth: int) -> Schema:
    keys = rng.sample(KEYS, rng.randint(1, 4))
    schema: Schema = {
        "type": "object",
        "properties": {key: _value(rng, depth) for key in keys},
        "required": [key for key in keys if rng.random() < 0.7],
    }
    return schema | rng.choice(({}, {"additionalProperties": False}))


def _array(rng: Random, depth: int) -> Schema:
    least = rng.randint(0, 2)
    bounds = {"minItems": least, "maxItems": least + rng.randint(0, 3)}
    return {"type": "array", "items": _value(rng, depth)} | rng.choice(({}, bounds))


def _any(rng: Random, depth: int) -> Schema:
    return {"anyOf": [_value(rng, depth), rng.choice(({"type": "null"}, _value(rng, depth)))]}


def _shared(_: Random, __: int) -> Schema:
    return {"$ref": "#/$defs/common"}


def _tagged(rng: Random, depth: int) -> Schema:
    """Objects that their first member tells apart."""
    options = [_object(rng, depth) for _ in range(2)]
    for option, tag in zip(options, rng.sample(WORDS, 2), strict=True):
        option["properties"] = {"kind": {"const": tag}} | option["properties"]
        option["required"].insert(0, "kind")
    return {"oneOf": options}


def _string(rng: Random, _: int) -> Schema:
    least = rng.randint(0, 3)
    extra: Schema = rng.choice(
        (
            {},
            {"minLength": least, "maxLength": least + rng.randint(0, 12)},
            {"pattern": rng.choice(PATTERNS)},
            {"format": rng.choice(FORMATS)},
        )
    )
    return {"type": "string"} | extra


def _number(rng: Random, _: int) -> Schema:
    low, high = sorted((rng.randint(-50, 200), rng.randint(-50, 2000)))
    kind = rng.choice(("integer", "number"))
    extra: Schema = rng.choice(
        (
            {},
            {"minimum": low, "maximum": high},
            {"exclusiveMinimum": low - 1, "exclusiveMaximum": high + 1},
            {"minimum": low, "maximum": high + 5, "multipleOf": 5},
        )
    )
    if kind == "number" and rng.random() < 0.3:
        return {"type": kind, "minimum": low / 8, "maximum": high / 4 + 50}
    return {"type": kind} | extra


def _listed(rng: Random, _: int) -> Schema:
    if rng.random() < 0.2:
        return {"const": rng.choice((*WORDS, 3, None))}
    return {"enum": rng.sample((*WORDS, 1, 2.5, True, None), rng.randint(1, 5))}


def _plain(rng: Random, _: int) -> Schema:
    return {"type": rng.choice(("boolean", "null", ["boolean", "null"]))}
