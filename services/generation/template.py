"""Templates: a text with gaps, written ``{{gap:N}}`` with N the most tokens of each."""

from __future__ import annotations

import re
from dataclasses import dataclass

from services.chassis.errors import InvalidRequest
from services.generation.types import Edit

MAX_GAPS = 64
FIELD = "constraint.template"

_GAP = re.compile(r"\{\{gap:([1-9]\d{0,5})\}\}", re.ASCII)
_OPENING = "{{gap"


@dataclass(frozen=True, slots=True)
class Template:
    """The text without its gaps, where they are, and how many tokens each may take."""

    text: str
    places: tuple[int, ...]
    tokens: tuple[int, ...]

    def as_edit(self, instruction: str) -> Edit:
        """The gaps as empty spans to fill."""
        return Edit(self.text, instruction, tuple((place, place) for place in self.places))


def read_template(value: str) -> Template:
    """Raises InvalidRequest for a template without gaps, with broken or with too many ones."""
    text, places, tokens, at = "", [], [], 0
    for gap in _GAP.finditer(value):
        text += value[at : gap.start()]
        places.append(len(text))
        tokens.append(int(gap[1]))
        at = gap.end()
    text += value[at:]
    if _OPENING in text:
        raise InvalidRequest.field(FIELD, "has a gap that is not written {{gap:N}} with N from 1")
    if not 1 <= len(places) <= MAX_GAPS:
        raise InvalidRequest.field(FIELD, f"must have 1 to {MAX_GAPS} gaps, has {len(places)}")
    return Template(text, tuple(places), tuple(tokens))
