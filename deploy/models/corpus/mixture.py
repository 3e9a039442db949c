"""The mixture of tasks, as one endless seeded stream."""

from collections.abc import Callable, Iterator, Mapping
from random import Random

from deploy.models.corpus import action, arithmetic, conversation, editing, infill, json_extraction
from deploy.models.corpus.example import Example, split_of

DRAWS: Mapping[str, Callable[[Random], Example]] = {
    "json": json_extraction.draw,
    "edit": editing.draw,
    "chain": arithmetic.draw,
    "drill": arithmetic.draw_drill,
    "action": action.draw,
    "copying": editing.draw_copying,
    "infill": infill.draw,
    "code": infill.draw_body,
    "span": editing.draw_span,
    "conversation": conversation.draw,
}
SHARES: Mapping[str, float] = {
    "json": 29, "edit": 31, "copying": 10, "chain": 12, "drill": 3, "action": 4,
    "infill": 7, "code": 2, "span": 0.5, "conversation": 1.5,
}  # fmt: skip
"""Shares of documents. With fewer chains or actions these decay in diffusion training."""

ALWAYS_TRAINED = frozenset({"chat", "text"})
"""Kinds with too few different prompts to hold any out."""


def examples(
    seed: int, split: str = "train", shares: Mapping[str, float] = SHARES
) -> Iterator[Example]:
    """Endless draws that belong to the split; equal seeds give equal streams."""
    rng = Random(f"{split}-{seed}")
    kinds, weights = list(shares), list(shares.values())
    while True:
        example = DRAWS[rng.choices(kinds, weights)[0]](rng)
        if split_of(example.input) == split or (
            split == "train" and example.kind in ALWAYS_TRAINED
        ):
            yield example
