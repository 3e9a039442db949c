"""The likeliest permitted tokens for several places that have to be filled at once.

Chosen one by one from the left, each would be the best for itself; here the tokens are
chosen together (Viterbi 1967) over the states of the automaton, place by place.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from services.generation.grammar.token_automaton import Ints, Options, TokenAutomaton

MAX_STATES, MAX_EDGES = 64, 100_000
"""Most states and transitions that are followed at a place, the likeliest first: exact for as
many, and bounded in time for more."""
_LEAST = -1e6
"""Logit of what is not a finite number."""

Scores = NDArray[np.float64]


def likeliest_tokens(
    automaton: TokenAutomaton, state: int, left: int, logits: NDArray[np.float32], eos_id: int
) -> list[int]:
    """One token for each row of ``logits`` [places, vocabulary], from ``state`` on.

    Their string has the highest product of the model's probabilities among those that
    may come and can be closed within ``left`` tokens, at least one a place. Behind the
    answer's end come end tokens, which count like any other: a short answer is not the
    likelier for being short.
    """
    states, scores = np.array([state], dtype=np.int32), np.zeros(1)
    steps: list[tuple[Ints, Ints]] = []
    for place, row in enumerate(logits):
        origins, options = _edges(automaton, states, left - place, eos_id)
        reached = scores[origins] + _finite(row[options.tokens])
        kept = _best_of_each(options.states, reached)
        states, scores = options.states[kept], reached[kept]
        steps.append((origins[kept], options.tokens[kept]))
    return _traced(steps)


def _edges(automaton: TokenAutomaton, states: Ints, left: int, eos_id: int) -> tuple[Ints, Options]:
    """What may come at any of the states, and the number of the state each starts from."""
    found: list[Options] = []
    count = 0
    for state in states[:MAX_STATES].tolist():
        if state == automaton.end:
            options = _ended(automaton.end, eos_id)
        else:
            options = automaton.options(state).within(left)
        count += len(options.tokens)
        if found and count > MAX_EDGES:
            break
        found.append(options)
    origins = np.repeat(np.arange(len(found), dtype=np.int32), [len(o.tokens) for o in found])
    columns = zip(*((o.tokens, o.states, o.distances) for o in found), strict=True)
    return origins, Options(*map(np.concatenate, columns))


def _ended(end: int, eos_id: int) -> Options:
    """The end is followed by end tokens."""
    return Options(*(np.array([value], dtype=np.int32) for value in (eos_id, end, 0)))


def _best_of_each(states: Ints, scores: Scores) -> NDArray[np.intp]:
    """Index of the best way to each state, the best states first."""
    best = np.full(int(states.max()) + 1, -np.inf)
    np.maximum.at(best, states, scores)
    winners = np.flatnonzero(scores == best[states])
    _, first = np.unique(states[winners], return_index=True)
    kept: NDArray[np.intp] = winners[first]
    return kept[np.argsort(-scores[kept], kind="stable")]


def _traced(steps: list[tuple[Ints, Ints]]) -> list[int]:
    """The tokens on the way to the best of the last states, which is the first."""
    tokens: list[int] = []
    at = 0
    for origins, chosen in reversed(steps):
        tokens.append(int(chosen[at]))
        at = int(origins[at])
    return tokens[::-1]


def _finite(logits: NDArray[np.float32]) -> Scores:
    """Logits are as good as log-probabilities: the difference is the same for every string."""
    return np.where(np.isfinite(logits), logits, _LEAST).astype(np.float64)
