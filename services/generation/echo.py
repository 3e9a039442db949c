"""Where a gap's answer starts to repeat what stands behind the gap, it has ended."""

from __future__ import annotations

LENGTH = 64
"""Characters of the suffix that are listened for."""
LEAST = 8
"""Characters but white space that a repetition has, so that a closing bracket is none."""


def echoes(suffix: str) -> tuple[str, ...]:
    """Texts that end the answer: the beginning of ``suffix``, with its leading white space and
    without.

    None where the suffix is too short to tell a repetition from a text of its own.
    """
    beginning = suffix.lstrip()[:LENGTH].rstrip()
    if sum(not character.isspace() for character in beginning) < LEAST:
        return ()
    led = suffix[: len(suffix) - len(suffix.lstrip())][-LENGTH:] + beginning
    return (beginning,) if led == beginning else (led, beginning)
