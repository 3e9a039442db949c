"""Schemas that hold together as one: allOf, siblings of anyOf and $ref, and branches of oneOf."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from services.generation.schema import BadSchema

Schema = Mapping[str, Any]
"""A schema object without combinations and references at its top."""

TYPES = ("object", "array", "string", "integer", "number", "boolean", "null")

_TIGHTEN: Mapping[str, Callable[[Any, Any], Any]] = {
    "minimum": max,
    "exclusiveMinimum": max,
    "minLength": max,
    "minItems": max,
    "minProperties": max,
    "maximum": min,
    "exclusiveMaximum": min,
    "maxLength": min,
    "maxItems": min,
    "maxProperties": min,
}


def merged(first: Schema, second: Schema, pointer: str) -> Schema:
    """What both ask for. Raises BadSchema for what cannot be asked for at once."""
    closed = first.get("additionalProperties") is False or (
        second.get("additionalProperties") is False
    )
    result: dict[str, Any] = {**first, **second}
    for name in first.keys() & second.keys():
        result[name] = _both(name, first[name], second[name], pointer)
    if "properties" in result:
        result["properties"] = _properties(first, second)
    if closed:
        result["additionalProperties"] = False
    return result


def _both(name: str, first: Any, second: Any, pointer: str) -> Any:
    if name in _TIGHTEN:
        return _TIGHTEN[name](first, second)
    match name:
        case "type":
            return [kind for kind in TYPES if _within(kind, first) and _within(kind, second)]
        case "enum":
            known = {canonical(value) for value in second}
            return [value for value in first if canonical(value) in known]
        case "required":
            return [*first, *(key for key in second if key not in first)]
        case "items":
            return {"allOf": [first, second]}
        case "properties" | "additionalProperties":
            return second
        case "multipleOf" if isinstance(first, int) and isinstance(second, int):
            return math.lcm(first, second)
    if canonical(first) != canonical(second):
        raise BadSchema(f"{pointer}/{name}", "is asked for twice in different ways")
    return first


def _properties(first: Schema, second: Schema) -> dict[str, Any]:
    """Properties of both; a closed object has none that it does not name."""
    left, right = first.get("properties", {}), second.get("properties", {})
    names = [*left, *(name for name in right if name not in left)]
    for side, named in ((first, left), (second, right)):
        if side.get("additionalProperties") is False:
            names = [name for name in names if name in named]
    return {
        name: {"allOf": [left[name], right[name]]}
        if name in left and name in right
        else left.get(name, right.get(name))
        for name in names
    }


def types_of(schema: Schema) -> list[str]:
    """The types that a schema allows; all of them where it does not say."""
    named = schema.get("type", list(TYPES))
    return [named] if isinstance(named, str) else list(named)


def _within(kind: str, named: str | list[str]) -> bool:
    names = [named] if isinstance(named, str) else named
    return kind in names or (kind == "integer" and "number" in names)


def apart(first: Schema, second: Schema, branches: Callable[[Any], Iterable[Schema]]) -> bool:
    """Whether no value is valid under both, as far as types, enums and required ones tell."""
    kinds = [kind for kind in TYPES if _within(kind, types_of(first))]
    common = [kind for kind in kinds if _within(kind, types_of(second))]
    if not common:
        return True
    if "enum" in first and "enum" in second:
        return not _both("enum", first["enum"], second["enum"], "")
    if set(common) != {"object"}:
        return False
    required = set(first.get("required", ())) & set(second.get("required", ()))
    left, right = first.get("properties", {}), second.get("properties", {})
    return any(
        all(apart(a, b, branches) for a in branches(left[name]) for b in branches(right[name]))
        for name in required & left.keys() & right.keys()
    )


def canonical(value: Any) -> str:
    """A text that equal JSON values share: 1 and 1.0 are equal, names have no order."""
    return json.dumps(_plain(value), sort_keys=True, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    return value
