"""Which tokens may come next so that an answer stays within its language and can still be closed.

The least number of tokens to an acceptable end is known for every state. A token is allowed
only if that number, from where it leads, fits into the tokens left: so every answer
that fits at the start is whole in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from services.generation.grammar.bytes_automaton import DEAD, BytesAutomaton
from services.generation.grammar.language import LanguageTooLarge

MAX_EDGES = 20_000_000
"""Most transitions of one automaton; each takes 12 bytes."""
_PAIRS_AT_ONCE = 4_000_000
_FORESIGHT = 32
"""Bytes that are looked ahead where only one text may follow."""

Ints = NDArray[np.int32]
Encode = Callable[[str], list[int]]


class TokenTable:
    """The text tokens of a vocabulary as one matrix of bytes.

    ``pieces[i]`` are the bytes of token i, empty where it is no text. ``encode`` gives
    the tokens that the model has learnt to write a text with.
    """

    def __init__(self, pieces: Sequence[bytes], eos_id: int, encode: Encode) -> None:
        self.pieces = pieces
        self.eos_id = eos_id
        self.encode = encode
        self.ids = np.array([i for i, piece in enumerate(pieces) if piece and i != eos_id])
        self.lengths = np.array([len(pieces[i]) for i in self.ids])
        self.bytes = np.zeros((len(self.ids), int(self.lengths.max())), dtype=np.uint8)
        for row, token in enumerate(self.ids):
            piece = pieces[token]
            self.bytes[row, : len(piece)] = np.frombuffer(piece, dtype=np.uint8)

    @property
    def spells_all_bytes(self) -> bool:
        """Whether every byte is a token of its own, so that any text can be written."""
        return len({piece for piece in self.pieces if len(piece) == 1}) == 256


@dataclass(frozen=True, slots=True)
class Options:
    """The tokens that may come next at one state, ascending, and where each leads."""

    tokens: Ints
    states: Ints
    distances: Ints
    """Least number of further tokens from there to an acceptable end."""

    def within(self, left: int) -> Options:
        """Those after which the answer can be closed with ``left`` tokens, this one included."""
        if not len(self.distances) or self.distances.max() < left:
            return self
        kept = self.distances < left
        return Options(self.tokens[kept], self.states[kept], self.distances[kept])


class TokenAutomaton:
    """States from 0 on; the last one is the end behind the end token."""

    def __init__(
        self,
        offsets: NDArray[np.int64],
        tokens: Ints,
        states: Ints,
        distances: Ints,
        start: int = 0,
    ) -> None:
        self.start = start
        self._offsets = offsets
        self._tokens = tokens
        self._states = states
        self._distances = distances
        self.end = len(distances) - 1

    @property
    def shortest(self) -> int:
        """Tokens of the shortest answer."""
        return int(self._distances[self.start])

    def starting_at(self, state: int) -> TokenAutomaton:
        """The same from another state on."""
        return TokenAutomaton(
            self._offsets, self._tokens, self._states, self._distances, start=state
        )

    def closes_within(self, tokens: int) -> NDArray[np.bool_]:
        """For each state whether an answer that starts there can be so short."""
        return (self._distances >= 0) & (self._distances <= tokens)

    def is_whole(self, state: int) -> bool:
        """Whether an answer may end there."""
        return bool(self._distances[state] == 0)

    def options(self, state: int) -> Options:
        """All tokens that may follow."""
        span = slice(self._offsets[state], self._offsets[state + 1])
        states = self._states[span]
        return Options(self._tokens[span], states, self._distances[states])

    def forced(self, state: int, left: int) -> int | None:
        """The only token that may follow, if there is just one."""
        options = self.options(state).within(left)
        return int(options.tokens[0]) if len(options.tokens) == 1 else None

    def follow(self, state: int, token: int, left: int) -> int | None:
        """The state behind ``token``; None if it may not follow with ``left`` tokens left."""
        options = self.options(state)
        at = int(np.searchsorted(options.tokens, token))
        if at == len(options.tokens) or options.tokens[at] != token:
            return None
        return int(options.states[at]) if options.distances[at] < left else None


def token_automaton(
    automaton: BytesAutomaton, table: TokenTable, start: int | None = 0
) -> TokenAutomaton:
    """The automaton over tokens; ``start`` None leaves open where answers start.

    Where only one text may follow, the tokens that the tokenizer would not choose for it
    are left out. Raises LanguageTooLarge beyond MAX_EDGES transitions and ValueError where
    nothing at all can be written.
    """
    starts, tokens, ends = _edges(automaton, table)
    if table.spells_all_bytes:
        kept = _as_encoded(automaton, table, starts, tokens, ends)
        starts, tokens, ends = starts[kept], tokens[kept], ends[kept]
    count = len(automaton.accepting)
    accepting = np.flatnonzero(automaton.accepting).astype(np.int32)
    starts = np.concatenate([starts, accepting])
    tokens = np.concatenate([tokens, np.full(len(accepting), table.eos_id, dtype=np.int32)])
    ends = np.concatenate([ends, np.full(len(accepting), count, dtype=np.int32)])
    distances = _distances(count + 1, starts, ends, [*accepting.tolist(), count])
    if start is not None and distances[start] < 0:
        raise ValueError("nothing would be valid")
    alive = distances[ends] >= 0
    starts, tokens, ends = starts[alive], tokens[alive], ends[alive]
    order = np.lexsort((tokens, starts))
    offsets = np.searchsorted(starts[order], np.arange(count + 2))
    return TokenAutomaton(offsets, tokens[order], ends[order], distances)


def _edges(automaton: BytesAutomaton, table: TokenTable) -> tuple[Ints, Ints, Ints]:
    """State, token and next state of every token that stays within the language."""
    none: Ints = np.empty(0, dtype=np.int32)
    found: list[tuple[Ints, Ints, Ints]] = [(none, none, none)]
    total = 0
    at_once = max(1, _PAIRS_AT_ONCE // len(table.ids))
    for first in range(0, len(automaton.table), at_once):
        reached = automaton.table[first : first + at_once][:, table.bytes[:, 0]]
        origin, row = np.nonzero(reached != DEAD)
        at, depth = reached[origin, row], 1
        while len(row):
            whole = table.lengths[row] == depth
            total += int(whole.sum())
            if total > MAX_EDGES:
                raise LanguageTooLarge
            found.append((_ints(origin[whole] + first), _ints(table.ids[row[whole]]), at[whole]))
            origin, row, at = origin[~whole], row[~whole], at[~whole]
            if len(row):
                at = automaton.table[at, table.bytes[row, depth]]
                alive = at != DEAD
                origin, row, at = origin[alive], row[alive], at[alive]
                depth += 1
    starts, tokens, ends = (np.concatenate(column) for column in zip(*found, strict=True))
    return starts, tokens, ends


def _ints(values: NDArray[np.int64]) -> Ints:
    return values.astype(np.int32)


def _as_encoded(
    automaton: BytesAutomaton, table: TokenTable, starts: Ints, tokens: Ints, ends: Ints
) -> NDArray[np.bool_]:
    """Marks the transitions that the tokenizer would take, and all where it would take none.

    A transition is judged only where the text behind it is certain, and never so that
    no token is left for a first byte that had one: every text can still be written. A first
    token that reaches to where certainty stops is not judged: what follows may part it anew.
    """
    certain = _certain_texts(automaton)

    @cache
    def chosen(token: int, following: bytes, whole: bool) -> bool:
        text = _whole_characters(table.pieces[token] + following)
        if text is None:
            return True
        first, *others = table.encode(text)
        return first == token or not (others or whole)

    kept = np.array(
        [
            not certain[end][0] or chosen(token, *certain[end])
            for token, end in zip(tokens.tolist(), ends.tolist(), strict=True)
        ],
        dtype=bool,
    )
    first_bytes = np.array([piece[0] if piece else 0 for piece in table.pieces])[tokens]
    groups = starts.astype(np.int64) * 256 + first_bytes
    return kept | ~np.isin(groups, groups[kept])


def _certain_texts(automaton: BytesAutomaton) -> list[tuple[bytes, bool]]:
    """For each state the bytes that have to follow, as far as only one text may.

    With it whether the answer ends there.
    """
    alive = automaton.table != DEAD
    ways = alive.sum(axis=1)
    single = (ways == 1) & ~automaton.accepting
    following = alive.argmax(axis=1)

    def text(state: int) -> tuple[bytes, bool]:
        read = bytearray()
        while single[state] and len(read) < _FORESIGHT:
            read.append(following[state])
            state = int(automaton.table[state, following[state]])
        return bytes(read), not ways[state]

    return [text(state) for state in range(len(single))]


def _whole_characters(data: bytes) -> str | None:
    """The text of the bytes without an unfinished last character; None: it starts inside one."""
    for cut in range(min(4, len(data))):
        try:
            return data[: len(data) - cut].decode()
        except UnicodeDecodeError:
            continue
    return None


def _distances(count: int, starts: Ints, ends: Ints, goals: list[int]) -> Ints:
    """Fewest transitions from each state to a goal, -1 where there is no way."""
    order = np.argsort(ends, kind="stable")
    origins = starts[order]
    offsets = np.searchsorted(ends[order], np.arange(count + 1))
    distances = np.full(count, -1, dtype=np.int32)
    distances[goals] = 0
    frontier, distance = np.array(goals), 0
    while len(frontier):
        distance += 1
        before = [origins[offsets[state] : offsets[state + 1]] for state in frontier.tolist()]
        reached = np.unique(np.concatenate(before))
        frontier = reached[distances[reached] < 0]
        distances[frontier] = distance
    return distances
