"""From final tokens to text that may be sent.

Three filters in a row: tokens to whole characters, reasoning apart from the
answer, stop texts held back until they are sure not to come.
"""

from __future__ import annotations

import codecs
import copy
from collections.abc import Iterable

from services.generation.thinking import Reasoning
from services.generation.vocabulary import Vocabulary


class Characters:
    """Bytes to characters, never half of one.

    Bytes that no UTF-8 text can hold are dropped, as is a half character at
    the end.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="ignore")

    def push(self, piece: bytes) -> str:
        """The characters that ``piece`` completes."""
        return self._decoder.decode(piece)

    def fork(self) -> Characters:
        """Another one that goes on from here."""
        other = Characters()
        other._decoder.setstate(self._decoder.getstate())
        return other


class StopTexts:
    """Holds back what may become a stop text; ends the answer before one.

    The stop text that is complete first wins, the longest if several are at
    once. So the answer is the same however the text was cut into chunks.
    """

    def __init__(self, stops: tuple[str, ...]) -> None:
        self._stops = stops
        self._held = ""
        self.met = False

    def push(self, text: str) -> str:
        """Text that is free to go."""
        if not self._stops:
            return text
        out: list[str] = []
        for character in text:
            out.append(self._next(character))
            if self.met:
                break
        return "".join(out)

    def flush(self) -> str:
        """What was held back, once nothing follows; empty after a stop text."""
        held, self._held = self._held, ""
        return held

    def _next(self, character: str) -> str:
        self._held += character
        complete = [stop for stop in self._stops if self._held.endswith(stop)]
        if complete:
            self.met = True
            free, self._held = self._held[: -max(map(len, complete))], ""
            return free
        keep = self._beginning()
        free, self._held = (
            self._held[: len(self._held) - keep],
            self._held[len(self._held) - keep :],
        )
        return free

    def _beginning(self) -> int:
        """Length of the longest tail of the held text that begins a stop text."""
        for length in range(len(self._held), 0, -1):
            tail = self._held[-length:]
            if any(stop.startswith(tail) for stop in self._stops):
                return length
        return 0


class Transcript:
    """The answer of one request as far as it is final."""

    def __init__(
        self, vocabulary: Vocabulary, stops: tuple[str, ...] = (), *, thinking: bool = False
    ) -> None:
        self._vocabulary = vocabulary
        self._from_the_left = bool(stops) or vocabulary.think_open_id is not None
        """Whether an undecided place may hide what follows it."""
        self._reasoning = Reasoning(vocabulary, inside=thinking)
        self._answer_characters = Characters()
        self._thinking_characters = Characters()
        self._stops = StopTexts(stops)
        self._thoughts: list[str] = []
        self.tokens = 0

    @property
    def stopped(self) -> bool:
        """Whether a stop text was met; what follows is not part of the answer."""
        return self._stops.met

    @property
    def thinking_tokens(self) -> int:
        """Tokens of reasoning so far, its marks included."""
        return self._reasoning.tokens

    @property
    def thinking(self) -> str:
        """The reasoning so far."""
        return "".join(self._thoughts)

    def push(self, tokens: Iterable[int]) -> str:
        """Takes final tokens up to a stop text; returns text that is free to go."""
        out: list[str] = []
        for token in tokens:
            if self.stopped:
                break
            self.tokens += 1
            out.append(self._take(token))
        return "".join(out)

    def finish(self) -> str:
        """Text that was held back, once no token follows."""
        return self._stops.flush()

    def preview(self, tokens: Iterable[int | None]) -> str:
        """What ``push`` would return for tokens that may still change, None where undecided.

        Where reasoning or a stop text may begin at an undecided place, nothing
        behind it is shown.
        """
        trial, out = self._fork(), ""
        for token in tokens:
            if trial.stopped or (token is None and self._from_the_left):
                break
            if token is None:
                trial._answer_characters = Characters()
            else:
                out += trial._take(token)
        return out

    def _fork(self) -> Transcript:
        """Another one that goes on from here and leaves this one as it is."""
        other = copy.copy(self)
        other._reasoning, other._stops = copy.copy(self._reasoning), copy.copy(self._stops)
        other._answer_characters = self._answer_characters.fork()
        other._thinking_characters, other._thoughts = Characters(), []
        return other

    def _take(self, token: int) -> str:
        belongs_to_reasoning = self._reasoning.observe(token)
        if self._reasoning.is_mark(token):
            return ""
        piece = self._vocabulary.piece(token)
        if belongs_to_reasoning:
            self._thoughts.append(self._thinking_characters.push(piece))
            return ""
        return self._stops.push(self._answer_characters.push(piece))
