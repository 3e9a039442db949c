"""How one request is answered."""

from __future__ import annotations

from dataclasses import dataclass

from services.generation.grammar.compiler import Check
from services.generation.grammar.spans import SpanForms
from services.generation.types import Edit, Job


@dataclass(frozen=True, slots=True)
class Plan:
    """How one request is answered.

    ``job`` is the first, often the only, sequence; an edit of spans goes on from
    it with ``edit``. ``check`` judges the whole answer, which it always passes if ``exact``.
    """

    job: Job
    truncated: bool = False
    check: Check | None = None
    edit: Edit | None = None
    shares: tuple[int, ...] = ()
    """Tokens for each span of ``edit``; an even share where there are none."""
    exact: bool = False
    """Whether automata alone keep the answer to its form."""
    spans: SpanForms | None = None
    """What the spans of ``edit`` are kept to, so that the whole has its form."""
