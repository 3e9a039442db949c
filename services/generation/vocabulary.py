"""What the engine knows of a model's tokens."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from tokenizers import Tokenizer

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>\Z")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Token ids with a meaning, and the bytes of every token that is text.

    ``pieces[i]`` is the exact UTF-8 piece of token i, empty for special tokens:
    a special token never appears in text.
    """

    pieces: tuple[bytes, ...]
    eos_id: int
    mask_id: int | None = None
    """Never generated, whatever the paradigm; None where the model has none."""
    think_open_id: int | None = None
    think_close_id: int | None = None

    @property
    def marks(self) -> tuple[int | None, int | None]:
        """The tokens around reasoning, None where the model has none."""
        return self.think_open_id, self.think_close_id

    def piece(self, token: int) -> bytes:
        """The token's bytes; empty for special ones and for padding of the matrix."""
        return self.pieces[token] if token < len(self.pieces) else b""


def token_bytes(tokenizer: Tokenizer) -> tuple[bytes, ...]:
    """The bytes each token stands for, special tokens empty.

    Knows byte-level vocabularies (GPT-2, Llama 3, Qwen) and SentencePiece ones
    with byte fallback (Llama 2); raises ValueError for any other.
    """
    spec = json.loads(tokenizer.to_str())
    read = _reader(json.dumps(spec["decoder"]))
    special = {token["id"] for token in spec["added_tokens"] if token["special"]}
    added = {token["id"] for token in spec["added_tokens"]}
    pieces = [b""] * (max(tokenizer.get_vocab().values()) + 1)
    for text, token in tokenizer.get_vocab().items():
        if token not in special:
            pieces[token] = text.encode() if token in added else read(text)
    return tuple(pieces)


def _reader(decoder: str) -> Callable[[str], bytes]:
    """How this vocabulary spells bytes, judged by its decoder."""
    if '"ByteLevel"' in decoder:
        return _byte_level
    if '"ByteFallback"' in decoder or '"Metaspace"' in decoder:
        return _sentence_piece
    raise ValueError(f"tokenizer decoder is not supported: {decoder[:200]}")


def _byte_level(text: str) -> bytes:
    """Undoes GPT-2's map of bytes to printable characters."""
    return bytes(_BYTE_OF[character] for character in text)


def _sentence_piece(text: str) -> bytes:
    """Undoes SentencePiece's marks for a space and for a single byte."""
    single = _BYTE_TOKEN.match(text)
    return bytes([int(single[1], 16)]) if single else text.replace("\u2581", " ").encode()


def _bytes_by_character() -> dict[str, int]:
    """GPT-2's map: printable Latin-1 stands for itself, the rest follows from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {
        chr(0x100 + index): byte for index, byte in enumerate(rest)
    }


_BYTE_OF = _bytes_by_character()
