"""A streamed answer as text: what is final, and the draft behind it where there is one."""

from __future__ import annotations

from typing import TextIO

from rich.cells import cell_len, set_cell_size

from braid.inference.v1 import inference_pb2 as inference
from services.cli.answer_line import answer_line

_DIM, _PLAIN, _ERASE, _RIGHT = "\x1b[2m", "\x1b[0m", "\x1b[K", "\x1b[{}C"


class StreamedText:
    """Final text goes to ``out`` as it comes, the line about the answer to ``notes``.

    On a terminal of ``width`` cells a draft stands dimmed behind the text until the
    next event, as far as the line has room; elsewhere it is a line of ``notes``.
    """

    def __init__(self, out: TextIO, notes: TextIO, width: int | None) -> None:
        self._out = out
        self._notes = notes
        self._width = width
        self._column = 0
        self._drafted = False

    def show(self, event: inference.GenerateStreamResponse) -> None:
        """Prints one event."""
        if self._drafted:
            self._write(f"\r{_RIGHT.format(self._column) if self._column else ''}{_ERASE}")
            self._drafted = False
        match event.WhichOneof("event"):
            case "delta":
                self._write(event.delta.text)
                self._advance(event.delta.text)
            case "draft":
                self._draft(event.draft)
            case "finished":
                self._write("\n")
                print(answer_line(event.finished), file=self._notes)

    def _draft(self, draft: inference.Draft) -> None:
        if self._width is None:
            print(f"[draft {draft.block_index}] {draft.text}", file=self._notes)
            return
        text = draft.text.replace("\n", "\u23ce")
        room = self._width - self._column - 1
        shown = text if cell_len(text) <= room else set_cell_size(text, room)
        self._write(f"{_DIM}{shown}{_PLAIN}")
        self._drafted = True

    def _write(self, text: str) -> None:
        print(text, end="", file=self._out, flush=True)

    def _advance(self, text: str) -> None:
        """Where the cursor is behind ``text``; it matters on a terminal alone."""
        if self._width is not None:
            _, line_break, last = text.rpartition("\n")
            self._column = ((0 if line_break else self._column) + cell_len(last)) % self._width
