"""The same texts about people and places that nobody has heard of: copying instead of recall."""

import re
from collections.abc import Callable
from dataclasses import replace
from random import Random

from deploy.models.corpus import editing, json_extraction
from deploy.models.corpus import words as w
from deploy.models.corpus.example import Edit, Example, Plain

_KNOWN = re.compile(rf"\b({'|'.join((*w.FIRST_NAMES, *w.LAST_NAMES, *w.CITIES, *w.TOPICS))})\b")


def _renamed(rng: Random, example: Example) -> Example:
    """The example with each name in it, everywhere, replaced by a made-up one."""
    names: dict[str, str] = {}

    def new(match: re.Match[str]) -> str:
        old = match.group()
        made = w.made_up(rng)
        return names.setdefault(old, made.capitalize() if old[0].isupper() else made)

    def renamed(text: str) -> str:
        return _KNOWN.sub(new, text)

    match example.input:
        case Plain(prompt):
            source: Plain | Edit = Plain(renamed(prompt))
        case Edit(text, instruction):
            source = Edit(renamed(text), renamed(instruction))
        case _:
            return example
    return replace(
        example, kind=f"{example.kind}_new_names", input=source, answer=renamed(example.answer)
    )


def _of(draw: Callable[[Random], Example]) -> Callable[[Random], Example]:
    """Draws until there was a name to replace."""

    def draw_new(rng: Random) -> Example:
        while True:
            example = draw(rng)
            new = _renamed(rng, example)
            if new.input != example.input:
                return new

    return draw_new


draw_json = _of(json_extraction.draw)
draw_edit = _of(editing.draw)
