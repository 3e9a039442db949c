"""Spans of a text that are filled so that the whole text keeps to a form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from services.generation.grammar.bytes_automaton import DEAD, BytesAutomaton
from services.generation.grammar.token_automaton import (
    Ints,
    TokenAutomaton,
    TokenTable,
    token_automaton,
)

MAX_SPANS = 8
"""Spans that are steered; each takes an automaton of its own."""
MAX_WORK = 50_000_000
"""Most states times bytes of kept text that are followed."""


class SpanForms:
    """What each span of one text may hold, in their order."""

    def __init__(self, form: BytesAutomaton, spans: Sequence[TokenAutomaton]) -> None:
        self._form = form
        self._spans = spans

    def at(self, index: int, written: str) -> TokenAutomaton:
        """What the span with that number may hold behind the text ``written``."""
        [state] = _after(self._form, np.zeros(1, dtype=np.int32), written)
        return self._spans[index].starting_at(int(state))


def span_forms(
    form: BytesAutomaton, table: TokenTable, kept: Sequence[str], tokens: int
) -> SpanForms | None:
    """The spans between the ``kept`` texts, the first and the last of which are outermost.

    A span may hold what the kept text behind it can follow so that each further span can
    be filled with at most ``tokens`` tokens. None where nothing can, or where to find out
    would take too long.
    """
    if len(form.table) * sum(map(len, kept)) > MAX_WORK or len(kept) > MAX_SPANS + 1:
        return None
    goals = form.accepting
    spans: list[TokenAutomaton] = []
    for text in reversed(kept[1:]):
        reached = _after(form, np.arange(len(form.table), dtype=np.int32), text)
        ends = (reached != DEAD) & goals[reached]
        span = token_automaton(replace(form, accepting=ends), table, start=None)
        goals = span.closes_within(tokens)[: len(form.table)]
        spans.append(span)
    [start] = _after(form, np.zeros(1, dtype=np.int32), kept[0])
    return SpanForms(form, spans[::-1]) if start != DEAD and goals[start] else None


def _after(form: BytesAutomaton, states: Ints, text: str) -> Ints:
    """Where the text leads from each of the states, DEAD where nowhere."""
    reached, alive = states.copy(), np.arange(len(states))
    for byte in text.encode():
        step = form.table[reached[alive], byte]
        reached[alive] = step
        alive = alive[step != DEAD]
        if not len(alive):
            break
    return reached
