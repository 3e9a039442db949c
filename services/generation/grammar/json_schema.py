"""JSON Schema (Draft 2020-12) as the regular language of the documents to write.

Every text of the language is valid; not every valid text is in it: no white space,
properties in the order in which the schema names them, none that it does not name,
numbers without exponent. A keyword is kept to exactly or refused by name.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from services.generation.grammar import characters as ch
from services.generation.grammar.formats import FORMATS
from services.generation.grammar.language import (
    EMPTY,
    Both,
    Language,
    LanguageTooLarge,
    Repeat,
    Text,
    either,
    optional,
    series,
)
from services.generation.grammar.merging import Schema, apart, merged, types_of
from services.generation.grammar.numbers import Bound, NotRegular, decimals, integers
from services.generation.grammar.pattern import Pattern, PatternError, parse_pattern
from services.generation.schema import BadSchema

MAX_RECURSION = 4
"""Times that a reference is followed within itself; what lies deeper is left out."""
ANY_DEPTH = 2
"""Arrays and objects within each other in a value that nothing is asked of."""
MAX_VISITS = 20_000
"""Times that a schema or a part of it is looked at, each reference to it counted."""
MAX_BRANCHES = 256
"""Most alternatives of one value once all combinations are written out."""

_ANNOTATIONS = frozenset(
    {
        "$schema",
        "$id",
        "$comment",
        "$anchor",
        "$defs",
        "definitions",
        "title",
        "description",
        "default",
        "examples",
        "deprecated",
        "readOnly",
        "writeOnly",
        "contentEncoding",
        "contentMediaType",
        "contentSchema",
    }
)
_ANY_STRING = series(Text('"'), Repeat(ch.in_json(ch.ANY), 0, None), Text('"'))
_ANY_NUMBER = decimals() or EMPTY
EMPTY_OBJECT = Text("{}")
_COMBINATIONS = frozenset(("$ref", "allOf", "anyOf", "oneOf", "const"))
_OF_TYPE: Mapping[str, frozenset[str]] = {
    "string": frozenset(("minLength", "maxLength", "pattern", "format")),
    "number": frozenset(
        ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
    ),
    "array": frozenset(("items", "prefixItems", "minItems", "maxItems")),
    "object": frozenset(
        ("properties", "required", "additionalProperties", "minProperties", "maxProperties")
    ),
}
_KNOWN = _ANNOTATIONS | _COMBINATIONS | {"type", "enum"} | frozenset().union(*_OF_TYPE.values())

References = tuple[str, ...]
"""The references that led to a schema, outermost first."""
Branch = tuple[Schema, References]


@dataclass(frozen=True, slots=True)
class SchemaLanguage:
    """The documents to write; unless ``exact``, an open object may have a name twice."""

    language: Language
    exact: bool


def schema_language(schema: dict[str, Any]) -> SchemaLanguage:
    """The documents that ``schema`` accepts; it has passed `read_schema`.

    Raises BadSchema with a pointer to what is not supported, contradicts itself or is too large.
    """
    compiler = _Compiler(schema)
    try:
        language = compiler.value(schema, "", ())
    except LanguageTooLarge as error:
        raise BadSchema("", str(error)) from None
    if language is None:
        raise BadSchema("", "nothing would be valid")
    return SchemaLanguage(language, compiler.exact)


class _Compiler:
    """One schema on its way to a language; methods give None where no value is valid."""

    def __init__(self, root: dict[str, Any]) -> None:
        self.exact = True
        self._root = root
        self._visits = 0
        resource = Resource.from_contents(root, default_specification=DRAFT202012)
        self._resolver = Registry().with_resource("", resource).resolver()
        self._writers: Mapping[str, Callable[[Schema, str, References], Language | None]] = {
            "object": self._object,
            "array": self._array,
            "string": self._string,
            "integer": partial(self._number, whole=True),
            "number": partial(self._number, whole=False),
            "boolean": lambda *_: _listed((True, False)),
            "null": lambda *_: _listed((None,)),
        }

    def value(self, schema: Any, pointer: str, references: References) -> Language | None:
        """Any value that ``schema`` accepts."""
        return _either(
            self._flat(branch, pointer, led)
            for branch, led in self._branches(schema, pointer, references)
        )

    def _branches(self, schema: Any, pointer: str, references: References) -> list[Branch]:
        """The alternatives of a schema, each free of combinations and references."""
        self._visits += 1
        if self._visits > MAX_VISITS:
            raise LanguageTooLarge
        if isinstance(schema, bool):
            return [({}, references)] if schema else []
        for name in schema:
            if name not in _KNOWN:
                raise BadSchema(f"{pointer}/{name}", "is not supported")
        kept = {k: v for k, v in schema.items() if k not in _ANNOTATIONS | _COMBINATIONS}
        if "const" in schema:
            kept = dict(merged(kept, {"enum": [schema["const"]]}, pointer))
        found: list[Branch] = [(kept, references)]
        if "$ref" in schema:
            found = _joined(found, self._referred(schema["$ref"], pointer, references), pointer)
        for index, part in enumerate(schema.get("allOf", ())):
            branches = self._branches(part, f"{pointer}/allOf/{index}", references)
            found = _joined(found, branches, pointer)
        for name in ("anyOf", "oneOf"):
            if name in schema:
                found = _joined(found, self._any(name, schema, pointer, references), pointer)
        return found

    def _referred(self, reference: str, pointer: str, references: References) -> list[Branch]:
        if references.count(reference) >= MAX_RECURSION:
            return []
        try:
            target = self._resolver.lookup(reference).contents
        except Unresolvable:
            raise BadSchema(f"{pointer}/$ref", "points to nothing") from None
        return self._branches(target, reference.lstrip("#"), (*references, reference))

    def _any(self, name: str, schema: Schema, pointer: str, references: References) -> list[Branch]:
        parts = [
            self._branches(part, f"{pointer}/{name}/{index}", references)
            for index, part in enumerate(schema[name])
        ]
        if name == "oneOf":
            self._must_be_apart(parts, f"{pointer}/oneOf", references)
        return [branch for part in parts for branch in part]

    def _must_be_apart(
        self, parts: list[list[Branch]], pointer: str, references: References
    ) -> None:
        def flat(schema: Any) -> Iterator[Schema]:
            return (branch for branch, _ in self._branches(schema, pointer, references))

        for index, part in enumerate(parts):
            for earlier in parts[:index]:
                if not all(apart(a, b, flat) for a, _ in part for b, _ in earlier):
                    raise BadSchema(
                        pointer,
                        "has branches that may hold at once, which is not supported: give them"
                        " different types or a required property with different constants",
                    )

    def _flat(self, schema: Schema, pointer: str, references: References) -> Language | None:
        if "enum" in schema:
            return _listed(self._allowed(schema, pointer))
        if not schema:
            return self._any_value(ANY_DEPTH)
        kinds = types_of(schema) if "type" in schema else _implied_types(schema)
        return _either(self._writers[kind](schema, pointer, references) for kind in kinds)

    def _allowed(self, schema: Schema, pointer: str) -> Iterator[Any]:
        """The values of an enum that the keywords beside it let through."""
        beside = {name: part for name, part in schema.items() if name != "enum"}
        named = {k: self._root[k] for k in ("$defs", "definitions") if k in self._root}
        validator = Draft202012Validator({**named, **beside}, registry=Registry())
        try:
            yield from (value for value in schema["enum"] if validator.is_valid(value))
        except Unresolvable:
            raise BadSchema(f"{pointer}/enum", "is not supported beside such a $ref") from None

    def _object(self, schema: Schema, pointer: str, references: References) -> Language | None:
        properties, required = schema.get("properties", {}), schema.get("required", ())
        self._check_object(schema, properties, required, pointer)
        others = schema.get("additionalProperties", True)
        if not properties and others is not False:
            value = self.value(others, f"{pointer}/additionalProperties", references)
            return EMPTY_OBJECT if value is None else self._open_object(value)
        members: list[tuple[Language, bool]] = []
        for name, part in properties.items():
            value = self.value(part, f"{pointer}/properties/{name}", references)
            if value is not None:
                named = series(Text(_written(name) + ":"), value)
                members.append((named, name in required))
            elif name in required:
                return None
        return series(Text("{"), _members(members), Text("}"))

    @staticmethod
    def _check_object(
        schema: Schema, properties: Schema, required: Iterable[str], pointer: str
    ) -> None:
        for name in required:
            if name not in properties:
                raise BadSchema(f"{pointer}/required", f"{name[:64]} is not among the properties")
        if schema.get("minProperties", 0) > len(set(required)):
            raise BadSchema(f"{pointer}/minProperties", "is only supported up to the required ones")
        if schema.get("maxProperties", len(properties)) < len(properties):
            raise BadSchema(f"{pointer}/maxProperties", "is only supported from their number on")

    def _open_object(self, value: Language) -> Language:
        """Names are free, so that nothing keeps them apart."""
        self.exact = False
        member = series(_ANY_STRING, Text(":"), value)
        return _listing("{", member, 0, None, "}")

    def _any_value(self, depth: int) -> Language:
        """Any value with at most ``depth`` arrays and objects within each other."""
        scalar = either(_ANY_STRING, _ANY_NUMBER, *map(Text, ("true", "false", "null")))
        if depth == 0:
            return scalar
        inner = self._any_value(depth - 1)
        return either(scalar, _listing("[", inner, 0, None, "]"), self._open_object(inner))

    def _array(self, schema: Schema, pointer: str, references: References) -> Language | None:
        least, most = schema.get("minItems", 0), schema.get("maxItems")
        if "prefixItems" in schema:
            return self._tuple(schema, pointer, references)
        if most is not None and most < least:
            return None
        items = schema.get("items", True)
        item = None if most == 0 else self.value(items, f"{pointer}/items", references)
        if item is None:
            return Text("[]") if least == 0 else None
        return _listing("[", item, least, most, "]")

    def _tuple(self, schema: Schema, pointer: str, references: References) -> Language | None:
        parts = schema["prefixItems"]
        if schema.get("items", False) is not False:
            raise BadSchema(f"{pointer}/items", "is only supported as false beside prefixItems")
        if schema.get("minItems", len(parts)) > len(parts) or (
            schema.get("maxItems", len(parts)) < len(parts)
        ):
            raise BadSchema(f"{pointer}/prefixItems", "is only supported with all of its items")
        written = [
            self.value(part, f"{pointer}/prefixItems/{index}", references)
            for index, part in enumerate(parts)
        ]
        items = [item for item in written if item is not None]
        if len(items) < len(written):
            return None
        comma = Text(",")
        joined = [piece for item in items for piece in (comma, item)][1:]
        return series(Text("["), *joined, Text("]"))

    @staticmethod
    def _string(schema: Schema, pointer: str, _: References) -> Language | None:
        least, most = schema.get("minLength", 0), schema.get("maxLength")
        if most is not None and most < least:
            return None
        body: Language | None = None
        for pattern in _patterns(schema, pointer):
            found = pattern.found_in(ch.in_json)
            body = found if body is None else Both(body, found)
        if body is None or least or most is not None:
            sized = Repeat(ch.in_json(ch.ANY), least, most)
            body = sized if body is None else Both(body, sized)
        return series(Text('"'), body, Text('"'))

    @staticmethod
    def _number(schema: Schema, pointer: str, _: References, whole: bool) -> Language | None:
        least, most = _bound(schema, "minimum", max), _bound(schema, "maximum", min)
        step = schema.get("multipleOf", 1)
        if step != int(step):
            raise BadSchema(f"{pointer}/multipleOf", "is only supported as a whole number")
        if not whole and "multipleOf" not in schema:
            return decimals(least, most)
        try:
            return integers(_whole(least, up=True), _whole(most, up=False), int(step))
        except NotRegular as error:
            raise BadSchema(f"{pointer}/multipleOf", f"is not supported here: {error}") from None


def _listing(start: str, item: Language, least: int, most: int | None, end: str) -> Language:
    """``least`` to ``most`` items with commas between them; ``most`` is not 0."""
    more = series(Text(","), item)
    rest = Repeat(more, max(0, least - 1), None if most is None else most - 1)
    several = series(item, rest)
    return series(Text(start), several if least else optional(several), Text(end))


def _joined(first: list[Branch], second: list[Branch], pointer: str) -> list[Branch]:
    """Every branch of one with every branch of the other."""
    if len(first) * len(second) > MAX_BRANCHES:
        raise BadSchema(pointer, f"has more than {MAX_BRANCHES} combinations")
    return [
        (merged(a, b, pointer), max(a_led, b_led, key=len))
        for a, a_led in first
        for b, b_led in second
    ]


def _either(options: Iterable[Language | None]) -> Language | None:
    found = [option for option in options if option is not None]
    return either(*found) if found else None


def _listed(values: Iterable[Any]) -> Language | None:
    return _either(Text(_written(value)) for value in values)


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _implied_types(schema: Schema) -> list[str]:
    """The types that a schema without any speaks of."""
    return [kind for kind, names in _OF_TYPE.items() if names & schema.keys()]


def _members(members: list[tuple[Language, bool]]) -> Language:
    """Names and values in their order with commas between those that are there."""
    comma = Text(",")
    first_required = next((i for i, (_, needed) in enumerate(members) if needed), None)
    if first_required is None:
        starts = [_from(members, index) for index in range(len(members))]
        return optional(either(*starts)) if starts else EMPTY
    before = [optional(series(part, comma)) for part, _ in members[:first_required]]
    return series(*before, _from(members, first_required))


def _from(members: list[tuple[Language, bool]], index: int) -> Language:
    """The member at ``index`` and what may follow it."""
    followers = [(series(Text(","), p), needed) for p, needed in members[index + 1 :]]
    rest = [part if needed else optional(part) for part, needed in followers]
    return series(members[index][0], *rest)


def _patterns(schema: Schema, pointer: str) -> Iterator[Pattern]:
    """What a string has to look like, by its pattern and its format."""
    if "format" in schema:
        if schema["format"] not in FORMATS:
            raise BadSchema(f"{pointer}/format", f"must be one of {', '.join(FORMATS)}")
        yield FORMATS[schema["format"]]
    if "pattern" in schema:
        try:
            yield parse_pattern(schema["pattern"])
        except PatternError as error:
            raise BadSchema(f"{pointer}/pattern", str(error)) from None


def _bound(schema: Schema, name: str, tightest: Callable[..., Any]) -> Bound | None:
    """The bound of a keyword and its exclusive sister, whichever is narrower."""
    exclusive = f"exclusive{name[0].upper()}{name[1:]}"
    bounds = [
        Bound(Decimal(str(schema[keyword])), inclusive=keyword == name)
        for keyword in (exclusive, name)
        if keyword in schema
    ]
    return tightest(bounds, key=lambda bound: bound.value) if bounds else None


def _whole(bound: Bound | None, *, up: bool) -> int | None:
    """The nearest whole number within the bound."""
    if bound is None:
        return None
    nearest = math.ceil(bound.value) if up else math.floor(bound.value)
    if nearest == bound.value and not bound.inclusive:
        nearest += 1 if up else -1
    return nearest
