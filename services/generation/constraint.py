"""The form an answer must have: checked at intake, judged when the answer is whole.

Only JSON Schema is kept to, by looking at the finished answer. A constraint that
steers decoding would be compiled here as well, and handed to the job.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import regex
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend
from referencing import Registry
from referencing.exceptions import Unresolvable

from services.chassis.errors import InvalidRequest, UnsupportedParameter
from services.generation.schema import BadSchema, read_schema, strict_json
from services.generation.types import Constraint

CHECK_S = 1.0
"""Longest time that checking one answer may take."""

FIELD = "constraint.json_schema"
SUPPORTED = ("json_schema",)

_PROBES: tuple[Any, ...] = (None, True, 0, "", [], {})

Keyword = Callable[[Any, Any, Any, Any], Any]


class _OutOfTime(Exception):
    """A check took longer than CHECK_S."""


class SchemaCheck:
    """Judges whether a text is JSON that a schema accepts. For one request, one thread a time."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._until = 0.0
        bounded: dict[str, Keyword] = {"pattern": self._pattern}
        for keyword in ("$ref", "$dynamicRef", "allOf", "anyOf", "oneOf"):
            bounded[keyword] = self._timed(Draft202012Validator.VALIDATORS[keyword])
        self._validator = _extended(bounded)(schema, registry=Registry())

    def accepts(self, text: str) -> bool:
        """Whether ``text`` conforms; what cannot be told within CHECK_S does not."""
        try:
            return self._conforms(strict_json(text))
        except (ValueError, ArithmeticError, RecursionError, Unresolvable, _OutOfTime):
            return False

    def probe(self) -> None:
        """Raises BadSchema where the schema refers to itself without end."""
        try:
            for value in _PROBES:
                self._conforms(value)
        except (RecursionError, _OutOfTime):
            raise BadSchema("", "refers to itself without end") from None

    def _conforms(self, value: Any) -> bool:
        self._until = time.monotonic() + CHECK_S
        return next(self._validator.iter_errors(value), None) is None

    def _time_left(self) -> float:
        left = self._until - time.monotonic()
        if left <= 0:
            raise _OutOfTime
        return left

    def _timed(self, keyword: Keyword) -> Keyword:
        def check(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
            self._time_left()
            return keyword(validator, value, instance, schema)

        return check

    def _pattern(
        self, validator: Any, pattern: str, instance: Any, _schema: Any
    ) -> Iterator[ValidationError]:
        """Runs the expression for a bounded time and without the interpreter's lock."""
        if not validator.is_type(instance, "string"):
            return
        try:
            found = regex.search(pattern, instance, timeout=self._time_left(), concurrent=True)
        except TimeoutError:
            raise _OutOfTime from None
        if found is None:
            yield ValidationError("does not match the pattern")


def _extended(keywords: dict[str, Keyword]) -> Any:
    return extend(Draft202012Validator, keywords)  # type: ignore[no-untyped-call]


def compile_constraint(constraint: Constraint | None) -> SchemaCheck | None:
    """The check of a constraint; None where there is none.

    Raises InvalidRequest with a pointer to the fault and UnsupportedParameter
    for a form that this worker does not keep to.
    """
    if constraint is None:
        return None
    if constraint.kind not in SUPPORTED:
        raise UnsupportedParameter.field(f"constraint.{constraint.kind}", "is not supported here")
    try:
        check = SchemaCheck(read_schema(constraint.value))
        check.probe()
    except BadSchema as error:
        raise InvalidRequest.field(FIELD, str(error)) from None
    return check
