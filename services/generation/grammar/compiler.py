"""From a caller's constraint to the automaton that its answer is kept to, once for many calls."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import regex

from services.chassis.errors import InvalidRequest
from services.generation.constraint import CHECK_S, SchemaCheck
from services.generation.grammar.bytes_automaton import bytes_automaton
from services.generation.grammar.json_schema import schema_language
from services.generation.grammar.language import Language, Text, either, size
from services.generation.grammar.pattern import parse_pattern
from services.generation.grammar.spans import SpanForms, span_forms
from services.generation.grammar.token_automaton import (
    Encode,
    TokenAutomaton,
    TokenTable,
    token_automaton,
)
from services.generation.schema import read_schema
from services.generation.types import Constraint
from services.generation.vocabulary import Vocabulary

CACHED = 128
"""Automata that are kept; the least recently used goes first."""
Check = Callable[[str], bool]
"""Judges a whole answer, by other means than the automaton."""


@dataclass(frozen=True, slots=True)
class Form:
    """What an answer must look like."""

    automaton: TokenAutomaton
    check: Check
    language: Language
    exact: bool
    """Whether the automaton alone keeps to the form; else whole answers are judged as well."""


class FormCompiler:
    """Compiles for one vocabulary; may be called from several threads.

    ``encode`` gives the tokens of a text as the model has learnt to write it.
    """

    def __init__(self, vocabulary: Vocabulary, encode: Encode) -> None:
        self._table = TokenTable(vocabulary.pieces, vocabulary.eos_id, encode)
        self._forms: OrderedDict[Constraint, Form] = OrderedDict()
        self._lock = threading.Lock()

    def compile(self, constraint: Constraint) -> Form:
        """Raises InvalidRequest naming the field for what cannot be kept to."""
        with self._lock:
            if constraint in self._forms:
                self._forms.move_to_end(constraint)
                return self._forms[constraint]
        form = self._compile(constraint)
        with self._lock:
            self._forms[constraint] = form
            while len(self._forms) > CACHED:
                self._forms.popitem(last=False)
        return form

    def _compile(self, constraint: Constraint) -> Form:
        field = f"constraint.{constraint.kind}"
        try:
            language, check, exact = _READERS[constraint.kind](constraint)
            size(language)
            automaton = token_automaton(bytes_automaton(language), self._table)
        except RecursionError:
            raise InvalidRequest.field(field, "is nested too deeply") from None
        except ValueError as error:
            raise InvalidRequest.field(field, str(error)) from None
        return Form(automaton, check, language, exact)

    def spans(self, form: Form, kept: Sequence[str], tokens: int) -> SpanForms | None:
        """What may be filled in between texts that are kept; see span_forms."""
        return span_forms(bytes_automaton(form.language), self._table, kept, tokens)


def _read_schema(constraint: Constraint) -> tuple[Language, Check, bool]:
    schema = read_schema(constraint.value)
    check = SchemaCheck(schema)
    check.probe()
    documents = schema_language(schema)
    return documents.language, check.accepts, documents.exact


def _read_regex(constraint: Constraint) -> tuple[Language, Check, bool]:
    try:
        expression = regex.compile(constraint.value)
    except regex.error as error:
        raise ValueError(f"is no regular expression: {error}") from None

    def check(text: str) -> bool:
        try:
            return expression.fullmatch(text, timeout=CHECK_S, concurrent=True) is not None
        except TimeoutError:
            return False

    return parse_pattern(constraint.value).whole(), check, True


def _read_choice(constraint: Constraint) -> tuple[Language, Check, bool]:
    options = list(constraint.options)
    return either(*map(Text, options)), options.__contains__, True


_READERS = {"json_schema": _read_schema, "regex": _read_regex, "choice": _read_choice}
