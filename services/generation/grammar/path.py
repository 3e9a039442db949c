"""One answer's way through its automaton."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from services.generation.grammar.joint import likeliest_tokens
from services.generation.grammar.token_automaton import TokenAutomaton
from services.generation.sampling import Draw

Logits = NDArray[np.float32]
"""One number per token of the vocabulary, in a row or several."""


class Path:
    """The tokens settled so far, from the answer's first on.

    After each of them the answer can be closed within what is left of ``most_tokens``.
    """

    def __init__(self, automaton: TokenAutomaton, most_tokens: int) -> None:
        self._automaton = automaton
        self._most = most_tokens
        self._states = [automaton.start]

    def __len__(self) -> int:
        """Tokens settled."""
        return len(self._states) - 1

    @property
    def left(self) -> int:
        """Tokens that may still come."""
        return self._most - len(self)

    @property
    def whole(self) -> bool:
        """Whether the answer may end here, or has ended."""
        return self._automaton.is_whole(self._states[-1])

    def forced(self) -> int | None:
        """The token that has to come next, if only one may."""
        return self._automaton.forced(self._states[-1], self.left)

    def take(self, token: int) -> None:
        """Settles the next token; it must be one that may come."""
        state = self._automaton.follow(self._states[-1], token, self.left)
        assert state is not None, "the token leads out of the language"
        self._states.append(state)

    def choose(self, logits: Logits, draw: Draw | None) -> tuple[int, float]:
        """The token to come by ``logits``, with its probability among those that may.

        ``draw`` None takes the likeliest. Numbers that are not finite count as least likely.
        """
        options = self._automaton.options(self._states[-1]).within(self.left)
        scores = np.nan_to_num(logits[options.tokens], nan=-np.inf, posinf=np.inf, neginf=-np.inf)
        best = int(scores.argmax())
        shares = np.exp(scores - scores[best]) if math.isfinite(scores[best]) else None
        if shares is None:
            return int(options.tokens[best]), 0.0
        shares /= shares.sum()
        picked = best if draw is None else _drawn(scores, draw)
        return int(options.tokens[picked]), float(shares[picked])

    def together(self, logits: Logits, eos_id: int) -> list[int]:
        """The next tokens by ``logits``, one for each row: together the likeliest.

        Behind an end token come end tokens.
        """
        return likeliest_tokens(self._automaton, self._states[-1], self.left, logits, eos_id)

    def shortest(self) -> list[int]:
        """Tokens that close the answer soonest, the end token not among them."""
        closing: list[int] = []
        state, left = self._states[-1], self.left
        while not self._automaton.is_whole(state):
            options = self._automaton.options(state).within(left)
            nearest = int(options.distances.argmin())
            closing.append(int(options.tokens[nearest]))
            state, left = int(options.states[nearest]), left - 1
        return closing


def _drawn(scores: Logits, draw: Draw) -> int:
    """Inverse transform over the options by probability, filters applied, as `sampling.predict`."""
    scaled = scores.astype(np.float64) / draw.temperature
    order = np.argsort(-scaled, kind="stable")
    shares = np.exp(scaled[order] - scaled[order[0]])
    shares /= shares.sum()
    mass = shares.cumsum()
    kept = mass - shares < draw.top_p
    if draw.top_k:
        kept[draw.top_k :] = False
    count = int(kept.sum())
    at = int(np.searchsorted(mass[:count], draw.uniform * mass[count - 1], side="right"))
    return int(order[min(at, count - 1)])
