"""An edit's spans as gaps."""

from __future__ import annotations

from services.generation.types import Edit, Infill


def kept_texts(edit: Edit) -> list[str]:
    """What is before, between and behind the spans."""
    borders = [0, *(border for span in edit.spans for border in span), len(edit.text)]
    return [edit.text[start:end] for start, end in zip(borders[::2], borders[1::2], strict=True)]


def gap_of(edit: Edit, written: str, end: int) -> Infill:
    """The gap between ``written`` and the text from ``end`` on.

    What the caller asked for leads the text before the gap.
    """
    asked = f"{edit.instruction}\n" if edit.instruction else ""
    return Infill(asked + written, edit.text[end:])
