"""Text from standard input."""

from __future__ import annotations

import sys

import typer


def read_stdin() -> str:
    """All of standard input, without the newline that ends it.

    Raises BadParameter where a person sits at it, who would wait for nothing.
    """
    if sys.stdin is None or sys.stdin.isatty():
        raise typer.BadParameter("give a prompt, or pipe one in", param_hint="PROMPT")
    try:
        return sys.stdin.buffer.read().decode("utf-8").removesuffix("\n")
    except UnicodeDecodeError:
        raise typer.BadParameter("standard input is not valid UTF-8") from None
