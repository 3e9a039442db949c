"""From a language over characters to a deterministic automaton over UTF-8 bytes.

Thompson's construction (1968), then subsets (Rabin and Scott, 1959). Counted repeats are
written out, so that an automaton of bounded size is found in bounded time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from services.generation.grammar.language import (
    Both,
    Character,
    Either,
    Language,
    LanguageTooLarge,
    Repeat,
    Series,
    Text,
)

MAX_STATES = 30_000
DEAD = -1
"""Where no text of the language leads."""

ByteRange = tuple[int, int]


@dataclass(frozen=True, slots=True)
class BytesAutomaton:
    """States from 0, the start, on.

    ``table[state, byte]`` is the next state or DEAD; ``accepting[state]`` tells whether
    a text may end there.
    """

    table: NDArray[np.int32]
    accepting: NDArray[np.bool_]


def bytes_automaton(language: Language) -> BytesAutomaton:
    """Raises LanguageTooLarge beyond MAX_STATES states."""
    draft = _Draft()
    start = draft.state()
    end = draft.add(language, start)
    return draft.determined(start, end)


class _Draft:
    """A nondeterministic automaton while it is built."""

    def __init__(self) -> None:
        self._free: list[list[int]] = []
        """Where each state leads without a byte."""
        self._edges: list[list[tuple[int, int, int]]] = []
        """First byte, last byte and next state."""

    def state(self) -> int:
        """A new state."""
        if len(self._free) > 10 * MAX_STATES:
            raise LanguageTooLarge
        self._free.append([])
        self._edges.append([])
        return len(self._free) - 1

    def add(self, language: Language, start: int) -> int:
        """Writes the language out from ``start``; the state in which it ends."""
        match language:
            case Text(text):
                for byte in text.encode():
                    start = self._step(start, (byte, byte))
                return start
            case Character(ranges):
                return self._character(start, tuple(utf8(ranges)))
            case Series(parts):
                for part in parts:
                    start = self.add(part, start)
                return start
            case Either(options):
                end = self.state()
                for option in options:
                    self._free[self.add(option, self._branch(start))].append(end)
                return end
            case Repeat(part, least, most):
                return self._repeated(part, least, most, start)
            case Both(first, second):
                return self._embed(_product(bytes_automaton(first), bytes_automaton(second)), start)

    def _step(self, start: int, span: ByteRange) -> int:
        end = self.state()
        self._edges[start].append((*span, end))
        return end

    def _branch(self, start: int) -> int:
        branch = self.state()
        self._free[start].append(branch)
        return branch

    def _character(self, start: int, spellings: tuple[tuple[ByteRange, ...], ...]) -> int:
        end = self.state()
        for *leading, last in spellings:
            at = start
            for span in leading:
                at = self._step(at, span)
            self._edges[at].append((*last, end))
        return end

    def _repeated(self, part: Language, least: int, most: int | None, start: int) -> int:
        for _ in range(least):
            start = self.add(part, start)
        end = self.state()
        self._free[start].append(end)
        if most is None:
            around = self._branch(start)
            after = self.add(part, around)
            self._free[after] += [around, end]
        for _ in range((most or least) - least):
            start = self.add(part, self._branch(start))
            self._free[start].append(end)
        return end

    def _embed(self, automaton: BytesAutomaton, start: int) -> int:
        states = [self.state() for _ in automaton.accepting]
        end = self.state()
        self._free[start].append(states[0])
        for state, row in zip(states, automaton.table, strict=True):
            self._edges[state] = [
                (byte, byte, states[row[byte]]) for byte in np.flatnonzero(row != DEAD).tolist()
            ]
        for index in np.flatnonzero(automaton.accepting).tolist():
            self._free[states[index]].append(end)
        return end

    def determined(self, start: int, end: int) -> BytesAutomaton:
        """The same language with one next state for each byte."""
        first = self._closure({start})
        numbers = {first: 0}
        rows: list[NDArray[np.int32]] = []
        waiting = [first]
        while waiting:
            row = np.full(256, DEAD, dtype=np.int32)
            for low, high, reached in self._moves(waiting.pop(0)):
                target = self._closure(reached)
                if target not in numbers:
                    if len(numbers) >= MAX_STATES:
                        raise LanguageTooLarge
                    numbers[target] = len(numbers)
                    waiting.append(target)
                row[low : high + 1] = numbers[target]
            rows.append(row)
        return BytesAutomaton(np.stack(rows), np.array([end in members for members in numbers]))

    def _closure(self, states: set[int]) -> frozenset[int]:
        """The states and all that they reach without a byte."""
        found, waiting = set(states), list(states)
        while waiting:
            fresh = [state for state in self._free[waiting.pop()] if state not in found]
            found.update(fresh)
            waiting += fresh
        return frozenset(found)

    def _moves(self, members: frozenset[int]) -> Iterator[tuple[int, int, set[int]]]:
        """Spans of bytes that lead to the same states, with those states."""
        edges = [edge for member in members for edge in self._edges[member]]
        cuts = sorted({low for low, _, _ in edges} | {high + 1 for _, high, _ in edges})
        for low, after in pairwise(cuts):
            reached = {target for start, end, target in edges if start <= low and after - 1 <= end}
            if reached:
                yield low, after - 1, reached


def _product(first: BytesAutomaton, second: BytesAutomaton) -> BytesAutomaton:
    """The texts that both accept."""
    numbers = {(0, 0): 0}
    rows: list[NDArray[np.int32]] = []
    waiting = [(0, 0)]
    while waiting:
        a, b = waiting.pop(0)
        row = np.full(256, DEAD, dtype=np.int32)
        left, right = first.table[a], second.table[b]
        for byte in np.flatnonzero((left != DEAD) & (right != DEAD)).tolist():
            pair = (int(left[byte]), int(right[byte]))
            if pair not in numbers:
                if len(numbers) >= MAX_STATES:
                    raise LanguageTooLarge
                numbers[pair] = len(numbers)
                waiting.append(pair)
            row[byte] = numbers[pair]
        rows.append(row)
    accepting = [bool(first.accepting[a] and second.accepting[b]) for a, b in numbers]
    return BytesAutomaton(np.stack(rows), np.array(accepting))


_LENGTHS = ((0x00, 0x7F), (0x80, 0x7FF), (0x800, 0xFFFF), (0x10000, 0x10FFFF))


def utf8(ranges: tuple[tuple[int, int], ...]) -> Iterator[tuple[ByteRange, ...]]:
    """The byte ranges that spell the characters, one series of ranges after the other."""
    for low, high in ranges:
        for shortest, longest in _LENGTHS:
            start, end = max(low, shortest), min(high, longest)
            if start <= end:
                yield from _spans(chr(start).encode(), chr(end).encode())


def _spans(low: bytes, high: bytes) -> Iterator[tuple[ByteRange, ...]]:
    """Byte strings of one length from ``low`` to ``high``, whose later bytes are 80 to BF."""
    if len(low) == 1:
        yield ((low[0], high[0]),)
        return
    first, last = low[0], high[0]
    least, most = b"\x80" * (len(low) - 1), b"\xbf" * (len(low) - 1)
    if first == last:
        yield from (((first, first), *rest) for rest in _spans(low[1:], high[1:]))
        return
    if low[1:] != least:
        yield from (((first, first), *rest) for rest in _spans(low[1:], most))
        first += 1
    ending = high[1:] != most
    if first <= last - ending:
        yield ((first, last - ending), *(((0x80, 0xBF),) * (len(low) - 1)))
    if ending:
        yield from (((last, last), *rest) for rest in _spans(least, high[1:]))
