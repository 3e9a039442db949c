"""How inputs and answers are written as token ids. The same templates go into `braid.json`."""

import re
from dataclasses import dataclass
from itertools import chain

from deploy.models import tokenizer as t
from deploy.models.corpus.example import Chat, Edit, Example, Infill, Input, Plain

PLAIN = f"{t.USER}{{prompt}}{t.ASSISTANT}"
OPEN = t.ASSISTANT
TURNS = {
    "system": f"{t.SYSTEM}{{content}}{t.END}",
    "user": f"{t.USER}{{content}}",
    "assistant": f"{t.ASSISTANT}{{content}}{t.END}",
}
INFILL = f"{t.FIM_PREFIX}{{prefix}}{t.FIM_SUFFIX}{{suffix}}{t.FIM_MIDDLE}"
EDIT = f"{t.USER}{{instruction}}\n{{text}}{t.ASSISTANT}"

_PARTS = re.compile("|".join(re.escape(s) for s in t.SPECIALS) + r"|\{\w+\}")


@dataclass(frozen=True)
class Document:
    """One example as tokens: ids, the index of the first answer token, and what it is."""

    ids: list[int]
    answer_start: int
    kind: str


class PromptEncoder:
    """Renders templates: their special tokens become specials, the user's text never does."""

    def __init__(self, codec: t.TextCodec) -> None:
        self._codec = codec

    def render(self, template: str, **values: str) -> list[int]:
        """Ids of a template; what lies between two specials is encoded as one piece."""
        ids: list[int] = []
        piece = ""
        position = 0
        for match in _PARTS.finditer(template):
            piece += template[position : match.start()]
            position = match.end()
            if match.group() in t.SPECIALS:
                ids += [*self._codec.encode(piece), self._codec.special(match.group())]
                piece = ""
            else:
                piece += values[match.group()[1:-1]]
        return ids + self._codec.encode(piece + template[position:])

    def prompt(self, source: Input) -> list[int]:
        """Ids up to where the answer begins."""
        match source:
            case Plain(prompt):
                return self.render(PLAIN, prompt=prompt)
            case Infill(prefix, suffix):
                return self.render(INFILL, prefix=prefix, suffix=suffix)
            case Edit(text, instruction):
                return self.render(EDIT, instruction=instruction, text=text)
            case Chat(turns):
                rendered = [self.render(TURNS[turn.role], content=turn.content) for turn in turns]
                return [*chain.from_iterable(rendered), self._codec.special(OPEN)]

    def thinking_off(self) -> list[int]:
        """The empty chain that asks for the answer at once."""
        return [self._codec.special(t.THINK), self._codec.special(t.END_THINK)]

    def document(self, example: Example) -> Document:
        """Prompt, chain, answer and the end token."""
        prompt = self.prompt(example.input)
        thoughts: list[int] = []
        if example.thinking_off:
            prompt = prompt + self.thinking_off()
        elif example.thinking:
            open_, close = self.thinking_off()
            thoughts = [open_, *self._codec.encode(example.thinking), close]
        answer = [*thoughts, *self._codec.encode(example.answer), self._codec.special(t.EOS)]
        return Document(prompt + answer, len(prompt), example.kind)
