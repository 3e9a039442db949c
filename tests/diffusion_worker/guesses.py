"""Guesses for tests, with the figures that a strategy looks at."""

from __future__ import annotations

from hypothesis import strategies as st

from services.diffusion_worker.strategy import Guess
from tests.generation.tiny import EOS

FIGURES = st.one_of(st.floats(0, 1), st.floats())
"""Mostly probabilities; every other float too, not a number and infinite ones included."""


def sure(*confidences: float, token: int = 4) -> list[Guess]:
    """Guesses at a token, left to right."""
    return [Guess(token, confidence) for confidence in confidences]


def guesses(*tokens: int, min_size: int = 1, max_size: int = 32) -> st.SearchStrategy[list[Guess]]:
    """Any guesses at those tokens; at an end token among others where none are named."""
    guess = st.builds(
        Guess,
        token=st.sampled_from(tokens or (EOS, 4, 5)),
        confidence=FIGURES,
        entropy=FIGURES,
        rival=FIGURES,
        luck=st.floats(0, 1, exclude_max=True),
    )
    return st.lists(guess, min_size=min_size, max_size=max_size)
