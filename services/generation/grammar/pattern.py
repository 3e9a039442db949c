"""Regular expressions of callers, in the part of ECMA-262 that describes regular languages.

Read into a tree of sets of characters, because a pattern for a JSON string speaks of
characters before they are escaped. What is not regular is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from services.generation.grammar import characters as ch
from services.generation.grammar.language import (
    EMPTY,
    Character,
    Either,
    Language,
    Ranges,
    Repeat,
    Series,
    either,
    series,
)

MAX_DEPTH = 64
"""Most groups within each other."""

Spelling = Callable[[Ranges], Language]
"""How one character of a set is written."""


class PatternError(ValueError):
    """A pattern that is broken or not supported; the message says where and what."""


@dataclass(frozen=True, slots=True)
class Option:
    """One alternative of the whole pattern, and whether it is tied to the text's ends."""

    language: Language
    from_start: bool
    to_end: bool


@dataclass(frozen=True, slots=True)
class Pattern:
    """A parsed expression: a text matches if it matches any option."""

    options: tuple[Option, ...]

    def whole(self) -> Language:
        """Texts that match from end to end, anchored or not."""
        return either(*(option.language for option in self.options))

    def found_in(self, spelling: Spelling) -> Language:
        """Texts in which the pattern is found somewhere, with each character spelled out."""
        anything = Repeat(spelling(ch.ANY), 0, None)
        return either(
            *(
                series(
                    EMPTY if option.from_start else anything,
                    _spelled(option.language, spelling),
                    EMPTY if option.to_end else anything,
                )
                for option in self.options
            )
        )


def parse_pattern(text: str) -> Pattern:
    """Raises PatternError for what is broken or not regular."""
    return _Parser(text).pattern()


def _spelled(language: Language, spelling: Spelling) -> Language:
    match language:
        case Character(ranges):
            return spelling(ranges)
        case Series(parts):
            return Series(tuple(_spelled(part, spelling) for part in parts))
        case Either(options):
            return Either(tuple(_spelled(option, spelling) for option in options))
        case Repeat(part, least, most):
            return Repeat(_spelled(part, spelling), least, most)
    return language


_CLASSES = {
    "d": ch.DIGITS,
    "w": ch.WORD,
    "s": ch.SPACES,
    "D": ch.complement(ch.DIGITS),
    "W": ch.complement(ch.WORD),
    "S": ch.complement(ch.SPACES),
}
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "0": "\0"}
_LITERAL = frozenset("^$\\.*+?()[]{}|/-\"'#&~!%,:;<=>@`_ ")
_QUANTIFIERS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}


class _Parser:
    """Recursive descent over the expression's characters."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0

    def pattern(self) -> Pattern:
        options = [self._option()]
        while self._take("|"):
            options.append(self._option())
        if self._at < len(self._text):
            raise self._fault("a closing bracket without its opening one")
        return Pattern(tuple(options))

    def _option(self) -> Option:
        from_start = self._take("^")
        language = self._series()
        return Option(language, from_start, self._take("$"))

    def _choice(self) -> Language:
        options = [self._series()]
        while self._take("|"):
            options.append(self._series())
        return either(*options)

    def _series(self) -> Language:
        parts: list[Language] = []
        while self._at < len(self._text) and self._next not in "|)$":
            parts.append(self._quantified(self._atom()))
        if self._next == "$" and self._following(1) not in ("", "|"):
            raise self._fault("an anchor inside the expression")
        if self._next == "$" and self._depth:
            raise self._fault("an anchor inside a group")
        return series(*parts)

    def _atom(self) -> Language:
        character = self._pop()
        match character:
            case "(":
                return self._group()
            case "[":
                return Character(self._class())
            case ".":
                return Character(ch.complement(ch.LINE_ENDS))
            case "\\":
                return Character(self._escape())
            case "^":
                raise self._fault("an anchor inside the expression")
            case "*" | "+" | "?" | "{":
                raise self._fault(f"a {character} with nothing before it to repeat")
        return Character(ch.single(character))

    def _group(self) -> Language:
        if self._take("?") and not self._take(":"):
            raise self._fault("a group that looks around, has a name or sets a flag")
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._fault(f"groups nested more than {MAX_DEPTH} deep")
        inner = self._choice()
        if not self._take(")"):
            raise self._fault("a group without its end")
        self._depth -= 1
        return inner

    def _quantified(self, part: Language) -> Language:
        bounds = _QUANTIFIERS.get(self._next)
        if bounds:
            self._pop()
        elif self._take("{"):
            bounds = self._counts()
        if bounds is None:
            return part
        self._take("?")
        return Repeat(part, *bounds)

    def _counts(self) -> tuple[int, int | None]:
        least = self._number()
        most: int | None = least
        if self._take(","):
            most = None if self._next == "}" else self._number()
        if not self._take("}"):
            raise self._fault("a repeat count without its end")
        if most is not None and most < least:
            raise self._fault("a repeat count that runs backwards")
        return least, most

    def _number(self) -> int:
        start = self._at
        while self._next.isascii() and self._next.isdigit():
            self._at += 1
        digits = self._text[start : self._at]
        if not digits or len(digits) > 6:
            raise self._fault("a repeat count that is no number below a million")
        return int(digits)

    def _class(self) -> Ranges:
        negated = self._take("^")
        ranges: Ranges = ()
        while self._next != "]":
            ranges = ch.union(ranges, self._class_member())
        self._pop()
        members = ch.complement(ranges) if negated else ranges
        if not members:
            raise self._fault("a class that no character is in")
        return members

    def _class_member(self) -> Ranges:
        first = self._class_atom()
        if self._next != "-" or self._following(1) in ("", "]"):
            return first
        self._pop()
        last = self._class_atom()
        if not (_is_single(first) and _is_single(last)):
            raise self._fault("a range between classes")
        start, end = first[0][0], last[0][0]
        if start > end:
            raise self._fault("a range that runs backwards")
        return ((start, end),)

    def _class_atom(self) -> Ranges:
        character = self._pop()
        if character == "\\":
            return ch.single("\b") if self._take("b") else self._escape()
        return ch.single(character)

    def _escape(self) -> Ranges:
        name = self._pop()
        if name in _CLASSES:
            return _CLASSES[name]
        if name in _CONTROLS:
            return ch.single(_CONTROLS[name])
        if name in ("x", "u"):
            return ch.single(self._code(2 if name == "x" else 4))
        if name in _LITERAL:
            return ch.single(name)
        raise self._fault(f"\\{name}")

    def _code(self, digits: int) -> str:
        text = self._text[self._at : self._at + digits]
        self._at += digits
        try:
            character = chr(int(text, 16))
        except ValueError:
            raise self._fault("an escape without its hexadecimal digits") from None
        if len(text) != digits or "\ud800" <= character <= "\udfff":
            raise self._fault("an escape that is no character")
        return character

    @property
    def _next(self) -> str:
        return self._following(0)

    def _following(self, ahead: int) -> str:
        at = self._at + ahead
        return self._text[at] if at < len(self._text) else ""

    def _take(self, character: str) -> bool:
        taken = self._next == character
        self._at += taken
        return taken

    def _pop(self) -> str:
        character = self._next
        if not character:
            raise self._fault("an end where more was expected")
        self._at += 1
        return character

    def _fault(self, what: str) -> PatternError:
        return PatternError(f"at character {self._at}: {what} is not supported")


def _is_single(ranges: Ranges) -> bool:
    return len(ranges) == 1 and ranges[0][0] == ranges[0][1]
