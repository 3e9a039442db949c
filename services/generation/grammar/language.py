"""Regular languages over Unicode text, as trees: what a schema, a pattern or choices allow."""

from __future__ import annotations

from dataclasses import dataclass

MAX_SIZE = 20_000
"""Most characters that a language may have with its repeats written out."""

Ranges = tuple[tuple[int, int], ...]
"""Inclusive ranges of code points, ascending and apart from each other."""


class LanguageTooLarge(ValueError):
    """A language that would take too long to compile."""

    def __init__(self) -> None:
        super().__init__(f"is too large: more than {MAX_SIZE} characters when written out")


@dataclass(frozen=True, slots=True)
class Text:
    """This text and no other."""

    text: str


@dataclass(frozen=True, slots=True)
class Character:
    """One character of a set that is not empty."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Series:
    """One text of each part, one after the other."""

    parts: tuple[Language, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """A text of any one of the options; there is at least one."""

    options: tuple[Language, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """Texts of the part side by side, from ``least`` to ``most`` of them; None: without end."""

    part: Language
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Both:
    """Texts that are in either language."""

    first: Language
    second: Language


Language = Text | Character | Series | Either | Repeat | Both

EMPTY = Text("")
"""The empty text."""


def series(*parts: Language) -> Language:
    """The parts in a row, without those that add nothing."""
    kept = tuple(part for part in parts if part != EMPTY)
    return kept[0] if len(kept) == 1 else Series(kept)


def either(*options: Language) -> Language:
    """Any of the options."""
    return options[0] if len(options) == 1 else Either(options)


def optional(part: Language) -> Language:
    """The part or nothing."""
    return Repeat(part, 0, 1)


def size(language: Language) -> int:
    """Characters of the language with repeats written out.

    Raises LanguageTooLarge as soon as there are more than MAX_SIZE.
    """
    match language:
        case Text(text):
            count = len(text)
        case Character():
            count = 1
        case Series(parts) | Either(parts):
            count = sum(size(part) for part in parts)
        case Repeat(part, least, most):
            count = size(part) * max(least, most or 1)
        case Both(first, second):
            count = size(first) + size(second)
    if count > MAX_SIZE:
        raise LanguageTooLarge
    return count
