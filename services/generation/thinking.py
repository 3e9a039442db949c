"""Where reasoning begins, ends and must end."""

from __future__ import annotations

from services.generation.vocabulary import Vocabulary


class Reasoning:
    """Follows a sequence's tokens through the marks around its reasoning.

    ``limit`` is the most tokens of reasoning, the closing mark not counted.
    """

    def __init__(self, vocabulary: Vocabulary, *, inside: bool, limit: int | None = None) -> None:
        self._open_id, self._close_id = self._marks = vocabulary.marks
        self._limit = limit
        self.inside = inside
        self.tokens = 0

    def observe(self, token: int) -> bool:
        """Takes the next token; True if it belongs to the reasoning, marks included."""
        belongs = self.inside or token == self._open_id
        if token == self._open_id:
            self.inside = True
        elif token == self._close_id:
            self.inside = False
        self.tokens += belongs
        return belongs

    def is_mark(self, token: int) -> bool:
        """Whether the token opens or closes reasoning: never text of either part."""
        return token in self._marks

    @property
    def left(self) -> int | None:
        """Tokens until the closing mark has to come; None where nothing asks for it."""
        if not self.inside or self._limit is None or self._close_id is None:
            return None
        return max(0, self._limit - self.tokens)
