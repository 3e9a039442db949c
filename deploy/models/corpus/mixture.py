"""The mixture of tasks, as one endless seeded stream."""

from collections.abc import Callable, Iterator, Mapping
from random import Random

from deploy.models.corpus import (
    action,
    arithmetic,
    conversation,
    editing,
    infill,
    json_extraction,
    new_words,
)
from deploy.models.corpus.example import Example, split_of

DRAWS: Mapping[str, Callable[[Random], Example]] = {
    "json": json_extraction.draw,
    "edit": editing.draw,
    "json_new_names": new_words.draw_json,
    "edit_new_names": new_words.draw_edit,
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
    "json": 19, "edit": 18, "json_new_names": 7, "edit_new_names": 6, "copying": 3, "chain": 22,
    "drill": 8, "action": 5, "infill": 6, "code": 2, "span": 1, "conversation": 3,
}  # fmt: skip
"""Shares of documents. Drills and copying hold more facts a token than the tasks they serve."""

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
