"""An input as the token ids that a model is asked with."""

from __future__ import annotations

from dataclasses import dataclass, replace

from services.chassis.errors import LimitExceeded, UnsupportedParameter
from services.generation.card import ModelCard
from services.generation.codec import TextCodec
from services.generation.types import Chat, Edit, Infill, Input, Prompt, Thinking

FIELDS: dict[type[Input], str] = {Prompt: "prompt", Chat: "chat", Infill: "infill", Edit: "edit"}
"""Field of the contract by input."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """A prompt in tokens; ``thinking`` says that the answer starts inside the reasoning.

    ``suffix`` comes behind the answer, for a model that sees what is right of it.
    """

    ids: tuple[int, ...]
    thinking: bool = False
    truncated: bool = False
    suffix: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.ids) + len(self.suffix)


class PromptEncoder:
    """Writes inputs in one model's templates."""

    def __init__(self, card: ModelCard, codec: TextCodec) -> None:
        self._card = card
        self._codec = codec

    def encode(self, source: Input, thinking: Thinking, room: int) -> Encoded:
        """The prompt in at most ``room`` tokens.

        Only an infill is cut to fit, at its far ends. Raises LimitExceeded for
        what does not fit and UnsupportedParameter for what has no template.
        """
        self._refuse_oversized(source, room)
        match source:
            case Infill():
                encoded = self._infill(source, room)
            case Prompt(text):
                encoded = self._answered(
                    self._render(self._card.prompt.plain, prompt=text), thinking
                )
            case Chat():
                encoded = self._answered(self._chat(source), thinking)
            case Edit(text, instruction):
                template = _required(self._card.prompt.edit, "edit")
                encoded = Encoded(tuple(self._render(template, instruction=instruction, text=text)))
        if len(encoded) > room:
            raise _too_long(source, f"{len(encoded)} tokens", room)
        return encoded

    def length(self, text: str) -> int:
        """Tokens of a text by itself."""
        return len(self._codec.encode(text))

    def _render(self, template: str, **values: str) -> list[int]:
        return self._codec.render(template, values)

    def _chat(self, chat: Chat) -> list[int]:
        turns = self._card.prompt.turns.model_dump()
        ids: list[int] = []
        for turn in chat.turns:
            ids += self._render(turns[turn.role], content=turn.content)
        return ids + self._render(self._card.prompt.open)

    def _answered(self, ids: list[int], thinking: Thinking) -> Encoded:
        """``ids`` with the mark that opens, or closes at once, the reasoning."""
        marks = self._card.thinking
        if thinking.enabled is None or marks is None:
            return Encoded(tuple(ids))
        opened = [*ids, self._codec.special(marks.open)]
        if thinking.enabled:
            return Encoded(tuple(opened), thinking=True)
        return Encoded((*opened, self._codec.special(marks.close)))

    def _refuse_oversized(self, source: Input, room: int) -> None:
        """Spares the tokenizer a text that cannot fit whatever it holds."""
        if not isinstance(source, Infill) and _length(source) > room * self._codec.longest_piece:
            raise _too_long(source, f"{_length(source)} characters", room)

    def _infill(self, source: Infill, room: int) -> Encoded:
        most = max(room, 1) * self._codec.longest_piece
        cut = Infill(source.prefix[-most:], source.suffix[:most])
        budget = room - len(self._surroundings(Infill("", "")))
        while True:
            if budget < 1:
                raise _too_long(source, "the gap's surroundings", room)
            encoded = self._surroundings(cut)
            if len(encoded) <= room:
                return replace(encoded, truncated=cut != source)
            cut = self._nearer(cut, budget)
            budget -= 1

    def _surroundings(self, gap: Infill) -> Encoded:
        """A gap's two sides: around the answer where the model sees both, else in a template.

        A text that starts with the gap starts with the end token, which stands
        between texts: under logit shift the first position has no prediction.
        """
        if not self._card.sees_right:
            template = _required(self._card.prompt.infill, "infill")
            return Encoded(tuple(self._render(template, prefix=gap.prefix, suffix=gap.suffix)))
        before = self._codec.encode(gap.prefix) or [self._codec.special(self._card.eos_token)]
        return Encoded(tuple(before), suffix=tuple(self._codec.encode(gap.suffix)))

    def _nearer(self, source: Infill, budget: int) -> Infill:
        """``source`` cut to ``budget`` tokens.

        The suffix keeps a quarter of them, or what the prefix leaves.
        """
        before, after = self._codec.starts(source.prefix), self._codec.starts(source.suffix)
        kept_after = min(len(after), max(budget // 4, budget - len(before)))
        first = max(len(before) - (budget - kept_after), 0)
        while 0 < first < len(before) and before[first] == before[first - 1]:
            first += 1
        start = before[first] if first < len(before) else len(source.prefix)
        end = after[kept_after] if kept_after < len(after) else len(source.suffix)
        return Infill(source.prefix[start:], source.suffix[:end])


def _required(template: str | None, field: str) -> str:
    if template is None:
        raise UnsupportedParameter.field(field, "this model has no such input")
    return template


def _length(source: Input) -> int:
    match source:
        case Prompt(text):
            return len(text)
        case Chat(turns):
            return sum(len(turn.content) for turn in turns)
        case Infill(prefix, suffix):
            return len(prefix) + len(suffix)
        case Edit(text, instruction):
            return len(text) + len(instruction)


def _too_long(source: Input, size: str, room: int) -> LimitExceeded:
    field = FIELDS[type(source)]
    return LimitExceeded.field(field, f"{size} do not fit the {max(room, 0)} tokens left for it")
