"""Whether a whole answer conforms to its schema, judged by jsonschema.

For answers that are kept to the schema this is an alarm; for others it is all there is.
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

from services.generation.schema import BadSchema, strict_json

CHECK_S = 1.0
"""Longest time that checking one answer may take."""

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
