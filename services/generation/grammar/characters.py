"""Sets of characters as ascending ranges of code points, and how JSON strings spell them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import groupby

from services.generation.grammar.language import (
    Character,
    Language,
    Ranges,
    Text,
    either,
    series,
)

_LAST = 0x10FFFF
_SURROGATES = (0xD800, 0xDFFF)
_CONTROLS = (0x00, 0x1F)
_QUOTE, _BACKSLASH = ord('"'), ord("\\")


def union(*sets: Iterable[tuple[int, int]]) -> Ranges:
    """Characters of any of the sets."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(r for ranges in sets for r in ranges):
        if merged and start <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)


def complement(ranges: Ranges) -> Ranges:
    """All other characters; surrogates are none."""
    result: list[tuple[int, int]] = []
    at = 0
    for start, end in (*union(ranges, (_SURROGATES,)), (_LAST + 1, _LAST + 1)):
        if start > at:
            result.append((at, start - 1))
        at = end + 1
    return tuple(result)


def without(ranges: Ranges, taken: Ranges) -> Ranges:
    """Characters of the first set that the second does not have."""
    return complement(union(complement(ranges), taken))


def single(character: str) -> Ranges:
    """The set of one character."""
    return ((ord(character), ord(character)),)


ANY: Ranges = complement(())
DIGITS: Ranges = ((0x30, 0x39),)
WORD: Ranges = union(DIGITS, ((0x41, 0x5A), (0x61, 0x7A)), single("_"))
SPACES: Ranges = union(
    ((0x09, 0x0D), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A)),
    ((0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF)),
)
"""White space of ECMA-262."""
LINE_ENDS: Ranges = ((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029))

_ESCAPED: Ranges = union((_CONTROLS,), single('"'), single("\\"))
"""What a JSON string writes with a backslash; everything else stands for itself."""


def in_json(ranges: Ranges) -> Language:
    """One character of the set as a JSON string spells it; each has one spelling."""
    plain = without(ranges, _ESCAPED)
    escaped = without(ranges, complement(_ESCAPED))
    spellings = [json.dumps(chr(code))[1:-1] for a, b in escaped for code in range(a, b + 1)]
    options: list[Language] = [Character(plain)] if plain else []
    for stem, members in groupby(sorted(spellings), key=lambda spelling: spelling[:-1]):
        last = union(*(single(member[-1]) for member in members))
        options.append(series(Text(stem), Character(last)))
    return either(*options)
