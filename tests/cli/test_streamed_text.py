"""What a streamed answer looks like, on a terminal and elsewhere."""

from __future__ import annotations

from io import StringIO

import pytest

from braid.inference.v1 import inference_pb2 as inference
from services.cli.streamed_text import StreamedText


def delta(text: str) -> inference.GenerateStreamResponse:
    return inference.GenerateStreamResponse(delta=inference.Delta(text=text))


def draft(text: str) -> inference.GenerateStreamResponse:
    return inference.GenerateStreamResponse(draft=inference.Draft(text=text, block_index=1))


END = inference.GenerateStreamResponse(finished=inference.Finished())


def shown(*events: inference.GenerateStreamResponse, width: int | None = None) -> tuple[str, str]:
    """Standard output and standard error of the events."""
    out, notes = StringIO(), StringIO()
    text = StreamedText(out, notes, width)
    for event in events:
        text.show(event)
    return out.getvalue(), notes.getvalue()


def test_drafts_in_a_pipe_stay_out_of_the_text() -> None:
    """Standard output holds the final text alone; each draft is a line beside it."""
    out, notes = shown(delta("a "), draft("b"), draft("bc"), delta("bd"), END)
    assert out == "a bd\n"
    assert notes.startswith("[draft 1] b\n[draft 1] bc\n")


@pytest.mark.parametrize(
    ("before", "column"), [("", 0), ("ab", 2), ("x\nabc", 3), ("红", 2), ("a" * 21, 1)]
)
def test_a_draft_is_erased_before_the_next_event(before: str, column: int) -> None:
    """The cursor goes back to where the final text ends, also behind wide characters."""
    out, _ = shown(delta(before), draft("d"), delta("e"), width=20)
    back = f"\r\x1b[{column}C" if column else "\r"
    assert out == f"{before}\x1b[2md\x1b[0m{back}\x1b[Ke"


def test_a_draft_stays_on_its_line() -> None:
    """What would wrap could not be erased: it is cut, and line breaks become signs."""
    out, _ = shown(delta("abc"), draft("d\ne" + "f" * 30), width=10)
    assert out == "abc\x1b[2md\u23ceefff\x1b[0m"
