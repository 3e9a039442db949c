"""Text to token ids, where a caller's text can never become a control token."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path

from tokenizers import Tokenizer

from services.chassis.errors import InvalidRequest
from services.generation.card import CheckpointError

FILE = "tokenizer.json"

SLOW_FILES = ("vocab.json", "merges.txt")
"""What the same tokenizer is published as where it has Python code of its own."""

_PLACE = r"\{(\w+)\}"


class TextCodec:
    """A tokenizer and the templates' special tokens.

    ``control`` are the special tokens; in templates they become their id, in
    values they are encoded as the characters they are spelled with.
    """

    def __init__(self, tokenizer: Tokenizer, control: Iterable[str]) -> None:
        self.tokenizer = _with_special(tokenizer, frozenset(control))
        self.control = {
            token.content: number
            for number, token in self.tokenizer.get_added_tokens_decoder().items()
            if token.special
        }
        self._control_ids = frozenset(self.control.values())
        spelled = sorted(map(re.escape, self.control), key=len, reverse=True)
        self._parts = re.compile("|".join([_PLACE, *(f"({token})" for token in spelled)]))

    @classmethod
    def from_folder(cls, folder: Path, control: Iterable[str]) -> TextCodec:
        """Reads ``tokenizer.json``. Raises CheckpointError naming the file."""
        path = folder / FILE
        if not path.exists():
            raise CheckpointError(f"{path}: is missing{_way_out(folder)}")
        try:
            return cls(Tokenizer.from_file(str(path)), control)
        except CheckpointError as error:
            raise CheckpointError(f"{path}: {error}") from None
        except Exception as error:  # the library raises Exception itself
            raise CheckpointError(f"{path}: {error}") from None

    @cached_property
    def longest_piece(self) -> int:
        """Most characters that one token can stand for."""
        return max(map(len, self.tokenizer.get_vocab()), default=1)

    def special(self, token: str) -> int:
        """Id of a control token. Raises KeyError for any other text."""
        return self.control[token]

    def encode(self, text: str) -> list[int]:
        """Ids of a caller's text; never a control token among them."""
        [encoding] = self.tokenizer.encode_batch([text], add_special_tokens=False)
        ids: list[int] = encoding.ids
        if not self._control_ids.isdisjoint(ids):
            raise InvalidRequest.field(
                "input", "spells a control token that this tokenizer cannot write as text"
            )
        return ids

    def starts(self, text: str) -> list[int]:
        """First character of each token of ``text``."""
        [encoding] = self.tokenizer.encode_batch([text], add_special_tokens=False)
        return [start for start, _ in encoding.offsets]

    def render(self, template: str, values: Mapping[str, str]) -> list[int]:
        """Ids of a template with its places filled.

        Literal text and values between two control tokens are encoded as one
        piece, so that tokens form across the border of a place as in training.
        """
        ids: list[int] = []
        piece, position = "", 0
        for part in self._parts.finditer(template):
            piece += template[position : part.start()]
            position = part.end()
            if part.group() in self.control:
                ids += [*self.encode(piece), self.special(part.group())]
                piece = ""
            else:
                piece += values.get(part.group(1), part.group())
        return ids + self.encode(piece + template[position:])


def _way_out(folder: Path) -> str:
    """What to do about a tokenizer that was published without its one file."""
    if not all((folder / name).exists() for name in SLOW_FILES):
        return ""
    return f"; {' and '.join(SLOW_FILES)} are there: see CONTRIBUTING.md for how to write it"


def _with_special(tokenizer: Tokenizer, control: frozenset[str]) -> Tokenizer:
    """A copy of ``tokenizer`` whose control tokens are special and never matched in text."""
    described = json.loads(tokenizer.to_str())
    added = {token["content"]: token for token in described["added_tokens"]}
    for name in control:
        if name not in added:
            raise CheckpointError(f"has no added token {name}")
        added[name]["special"] = True
    copy = Tokenizer.from_str(json.dumps(described))
    copy.encode_special_tokens = True
    copy.no_truncation()
    copy.no_padding()
    return copy
