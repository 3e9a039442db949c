"""What the engine knows of a model's tokens."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Token ids with a meaning, and the bytes of every token that is text.

    ``pieces[i]`` is the exact UTF-8 piece of token i, empty for special tokens:
    a special token never appears in text.
    """

    pieces: tuple[bytes, ...]
    eos_id: int
    mask_id: int | None = None
    """Never generated, whatever the paradigm; None where the model has none."""
    think_open_id: int | None = None
    think_close_id: int | None = None
