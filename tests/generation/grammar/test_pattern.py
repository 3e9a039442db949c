"""Patterns of callers, against Python's own regular expressions."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.generation.grammar import characters as ch
from services.generation.grammar.bytes_automaton import bytes_automaton
from services.generation.grammar.pattern import PatternError, parse_pattern
from tests.generation.grammar.automata import accepts

atoms = st.sampled_from(
    ["a", "b", ".", "[ab]", "[^a]", r"\d", r"\w", r"[a-c1]", r"\.", "é", "京", r"\"", r"\\"]
)
pieces = st.builds(
    "{}{}".format, atoms, st.sampled_from(["", "*", "+", "?", "{2}", "{1,2}", "{0,}"])
)
series = st.lists(pieces, min_size=1, max_size=4).map("".join)
grouped = st.lists(series, min_size=1, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})")
patterns = st.lists(series | grouped, min_size=1, max_size=2).map("".join)
texts = st.text(st.sampled_from('ab1.c_é京"\\\n '), max_size=6)


@given(patterns, st.lists(texts, min_size=8, max_size=8))
@settings(max_examples=150, deadline=None)
def test_whole_texts_match_as_in_python(pattern: str, candidates: list[str]) -> None:
    """Matching from end to end."""
    automaton = bytes_automaton(parse_pattern(pattern).whole())
    for text in candidates:
        assert accepts(automaton, text) is bool(re.fullmatch(pattern, text, re.ASCII))


@given(
    patterns,
    st.sampled_from(["", "^"]),
    st.sampled_from(["", "$"]),
    st.lists(texts, min_size=8, max_size=8),
)
@settings(max_examples=150, deadline=None)
def test_json_strings_hold_the_pattern_as_in_python(
    pattern: str, start: str, end: str, candidates: list[str]
) -> None:
    """A pattern is found in the text that a JSON string stands for, escapes and all."""
    tied = f"{start}(?:{pattern}){end}"
    automaton = bytes_automaton(parse_pattern(tied).found_in(ch.in_json))
    for text in candidates:
        spelled = json.dumps(text, ensure_ascii=False)[1:-1]
        found = re.search(tied.replace("$", r"\Z"), text, re.ASCII)
        assert accepts(automaton, spelled) is bool(found)


@pytest.mark.parametrize(
    "pattern",
    [
        "(?=a)", "(?!a)", "(?<=a)b", "(?P<n>a)", "(?i)a", r"(a)\1", r"\bword", r"\p{L}", "a(b",
        "a)", "[a", "[]", "[^\\d\\D]", "[b-a]", "[\\d-z]", "a{2,1}", "a{2", "a{}", "*a", "a**",
        "a^", "a$b", "(^a)", "\\", r"\x1", r"\ud800", "a{1000000}", "(" * 100 + "a" + ")" * 100,
    ],
)  # fmt: skip
def test_what_is_broken_or_not_regular_is_refused(pattern: str) -> None:
    """With the place of the fault."""
    with pytest.raises(PatternError, match="at character"):
        parse_pattern(pattern)
