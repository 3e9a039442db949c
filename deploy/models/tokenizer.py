"""The byte-level BPE both models share.

Runs are split so that copying is a plain map of tokens: single digits and Han characters,
letter runs, space runs, punctuation runs, a newline with its indent; a space is never part
of a word.
"""

from collections.abc import Iterable
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from deploy.models.corpus.action import ACTION_TOKENS

VOCABULARY_SIZE = 2560
PAD, EOS, MASK = "<|pad|>", "<|eos|>", "<|mask|>"
USER, ASSISTANT, SYSTEM, END = "<|user|>", "<|assistant|>", "<|system|>", "<|end|>"
FIM_PREFIX, FIM_SUFFIX, FIM_MIDDLE = "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"
THINK, END_THINK = "<think>", "</think>"
SPECIALS = (
    PAD,
    EOS,
    MASK,
    USER,
    ASSISTANT,
    SYSTEM,
    END,
    FIM_PREFIX,
    FIM_SUFFIX,
    FIM_MIDDLE,
    THINK,
    END_THINK,
)

_RUNS = r"\r?\n[ \t]*|[ \t]+|\p{N}|\p{Han}|[\p{L}&&[^\p{Han}]]+|[^\s\p{L}\p{N}]+|\s"


def train_tokenizer(texts: Iterable[str]) -> Tokenizer:
    """A tokenizer of VOCABULARY_SIZE entries: specials, all 256 bytes, action tokens, merges."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_RUNS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_SIZE - len(ACTION_TOKENS),
        special_tokens=list(SPECIALS),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in ACTION_TOKENS])
    return tokenizer


class TextCodec:
    """Text to ids and back, where text that spells a special token stays text."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._plain = Tokenizer.from_str(tokenizer.to_str())
        self._plain.encode_special_tokens = True
        self.size = self._plain.get_vocab_size()

    @classmethod
    def from_file(cls, path: Path) -> "TextCodec":
        """Reads a `tokenizer.json`."""
        return cls(Tokenizer.from_file(str(path)))

    def encode(self, text: str) -> list[int]:
        """Ids of plain text; no special token among them."""
        ids: list[int] = self._plain.encode(text, add_special_tokens=False).ids
        return ids

    def special(self, token: str) -> int:
        """The id of one special token."""
        found = self._plain.token_to_id(token)
        if found is None:
            raise KeyError(token)
        return int(found)

    def decode(self, ids: list[int]) -> str:
        """Text of the ids, specials spelled out."""
        return str(self._plain.decode(ids, skip_special_tokens=False))
