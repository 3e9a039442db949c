"""JSON Schemas of callers: what is refused at intake, and why nothing outside is ever read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import regex
from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

DIALECT = "https://json-schema.org/draft/2020-12/schema"
MAX_DEPTH = 64

_REFERENCES = ("$ref", "$dynamicRef")
_VALUES = ("const", "enum", "default", "examples")
_BY_NAME = ("properties", "$defs", "definitions", "dependentSchemas")
_REFUSED = ("patternProperties",)
"""Keywords whose regular expressions the validator would run without a bound."""


class BadSchema(ValueError):
    """A schema that is refused; the message begins with a JSON pointer to the fault."""

    def __init__(self, pointer: str, fault: str) -> None:
        super().__init__(f"{pointer or '/'}: {fault}")


def strict_json(text: str) -> Any:
    """Parses JSON as the standard has it: no NaN, no name twice, no lone surrogate.

    Raises ValueError; RecursionError becomes one.
    """
    try:
        value = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_no_doubles)
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except UnicodeEncodeError:
        raise ValueError("holds a lone surrogate") from None
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _no_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = dict(pairs)
    if len(names) != len(pairs):
        raise ValueError("an object has a name twice")
    return names


def read_schema(text: str) -> dict[str, Any]:
    """The schema in ``text``. Raises BadSchema for every schema that could not be kept to."""
    try:
        schema = strict_json(text)
    except ValueError as error:
        raise BadSchema("", f"not JSON: {error}") from None
    if schema is True:
        return {}
    if not isinstance(schema, dict):
        raise BadSchema("", "must be an object or true; nothing would be valid or it is no schema")
    _check_parts(schema)
    try:
        Draft202012Validator.check_schema(schema, format_checker=FormatChecker(formats=()))
    except SchemaError as error:
        raise BadSchema(_pointer(error.absolute_path), _brief(error)) from None
    _check_references(schema)
    return schema


def _check_parts(schema: dict[str, Any]) -> None:
    if str(schema.get("$schema", DIALECT)).rstrip("#") != DIALECT:
        raise BadSchema("/$schema", f"only {DIALECT} is known")
    for pointer, part in _schemas(schema, "", 0):
        _check_part(pointer, part)


def _check_part(pointer: str, part: dict[str, Any]) -> None:
    for name in _REFUSED:
        if name in part:
            raise BadSchema(f"{pointer}/{name}", "is not supported")
    for name in _REFERENCES:
        if not str(part.get(name, "#")).startswith("#"):
            raise BadSchema(f"{pointer}/{name}", "must point into this schema, with #")
    if pointer and "$id" in part:
        raise BadSchema(f"{pointer}/$id", "is not supported below the top")
    if part.get("enum") == []:
        raise BadSchema(f"{pointer}/enum", "is empty: nothing would be valid")
    if isinstance(part.get("pattern"), str):
        _check_pattern(f"{pointer}/pattern", part["pattern"])


def _check_pattern(pointer: str, pattern: str) -> None:
    try:
        regex.compile(pattern)
    except regex.error as error:
        raise BadSchema(pointer, f"is no regular expression: {error}") from None


def _check_references(schema: dict[str, Any]) -> None:
    resource = Resource.from_contents(schema, default_specification=DRAFT202012)
    resolver = Registry().with_resource("", resource).resolver()
    for pointer, part in _schemas(schema, "", 0):
        for name in _REFERENCES:
            if name in part:
                try:
                    resolver.lookup(part[name])
                except Unresolvable:
                    raise BadSchema(f"{pointer}/{name}", "points to nothing") from None


def _schemas(value: Any, pointer: str, depth: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema object in ``value`` with its pointer."""
    if depth > MAX_DEPTH:
        raise BadSchema(pointer, f"is nested more than {MAX_DEPTH} deep")
    if isinstance(value, list):
        for index, part in enumerate(value):
            yield from _schemas(part, f"{pointer}/{index}", depth + 1)
    if isinstance(value, dict):
        yield pointer, value
        for name, part in value.items():
            yield from _below(name, part, f"{pointer}/{_escaped(name)}", depth + 1)


def _below(
    keyword: str, part: Any, pointer: str, depth: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The schemas that a keyword holds: under names, as they stand, or none."""
    if keyword in _VALUES:
        return
    if keyword in _BY_NAME and isinstance(part, dict):
        for name, named in part.items():
            yield from _schemas(named, f"{pointer}/{_escaped(name)}", depth)
    else:
        yield from _schemas(part, pointer, depth)


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _pointer(path: Any) -> str:
    return "".join(f"/{part}" for part in path)


def _brief(error: SchemaError) -> str:
    """The rule that a schema breaks, without quoting the schema."""
    return f"breaks {error.validator} of the schema dialect"
