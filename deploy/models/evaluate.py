"""Quality and speed on the golden sets; answering and scoring are kept apart."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from deploy.models.check import Score, check_output
from deploy.models.checkpoint import load_codec, load_model
from deploy.models.commit_rule import Rule
from deploy.models.corpus.example import input_from_message
from deploy.models.decode import Decoded, decode_autoregressive, decode_diffusion
from deploy.models.export import BLOCK
from deploy.models.golden_sets import KINDS, read_golden_set
from deploy.models.model import Shape
from deploy.models.prompt_format import PromptEncoder
from deploy.models.tokenizer import EOS, MASK, TextCodec

MAX_NEW_TOKENS = 192


@dataclass(frozen=True)
class Answer:
    """What came back for one item, and what it cost."""

    text: str
    forwards: int
    tokens: int
    seconds: float


Answerer = Callable[[dict[str, Any]], Answer]
"""Answers one golden item, in this process or over a mesh."""


@dataclass(frozen=True)
class Figures:
    """One line of the table; shares are between 0 and 1."""

    name: str
    items: int
    right: float
    valid: float
    tokens_per_forward: float
    tokens_per_second: float
    empty_right: float


def score(item: dict[str, Any], text: str) -> Score:
    """Scores one output."""
    return check_output(item["check"], text, item["expect"], item.get("schema", ""))


def figures(name: str, items: Sequence[dict[str, Any]], answers: Sequence[Answer]) -> Figures:
    """Adds up one golden set; `empty_right` is the baseline that always answers nothing."""
    scores = [score(item, answer.text) for item, answer in zip(items, answers, strict=True)]
    tokens, seconds = sum(a.tokens for a in answers), sum(a.seconds for a in answers)
    count = len(items)
    return Figures(
        name,
        count,
        sum(s.right for s in scores) / count,
        sum(s.valid for s in scores) / count,
        tokens / max(1, sum(a.forwards for a in answers)),
        tokens / max(1e-9, seconds),
        sum(score(item, "").right for item in items) / count,
    )


def table(rows: Iterable[Figures]) -> Iterator[str]:
    """Markdown lines."""
    yield "| set | items | right % | valid % | tokens per forward | tokens/s | empty right % |"
    yield "|---|---|---|---|---|---|---|"
    for row in rows:
        yield (
            f"| {row.name} | {row.items} | {100 * row.right:.1f} | {100 * row.valid:.1f} "
            f"| {row.tokens_per_forward:.2f} | {row.tokens_per_second:.0f} "
            f"| {100 * row.empty_right:.1f} |"
        )


class ReferenceAnswerer:
    """Answers with the reference decoder of this package."""

    def __init__(self, weights: Path, codec: TextCodec, paradigm: str, rule: Rule) -> None:
        self._model = load_model(weights, Shape(vocab_size=codec.size), torch.bfloat16).eval()
        self._codec, self._encoder = codec, PromptEncoder(codec)
        self._paradigm, self._rule = paradigm, rule
        self._eos, self._mask = codec.special(EOS), codec.special(MASK)

    def _decode(self, prompt: list[int]) -> Decoded:
        if self._paradigm == "autoregressive":
            return decode_autoregressive(self._model, prompt, self._eos, MAX_NEW_TOKENS)
        return decode_diffusion(
            self._model, prompt, self._mask, self._eos, MAX_NEW_TOKENS, BLOCK, self._rule
        )

    def __call__(self, item: dict[str, Any]) -> Answer:
        """Decodes one item; the time is that of decoding alone."""
        prompt = self._encoder.prompt(input_from_message(item["input"]))
        began = time.perf_counter()
        decoded = self._decode(prompt)
        seconds = time.perf_counter() - began
        kept = [i for i in decoded.ids if i != self._eos]
        return Answer(self._codec.decode(kept), decoded.forwards, len(decoded.ids), seconds)


def evaluate(
    answer: Answerer, kinds: Sequence[str] = KINDS, holdout: bool = False, limit: int = 10_000
) -> list[Figures]:
    """One line of figures for each golden set."""
    rows = []
    for kind in kinds:
        items = read_golden_set(kind, holdout)[:limit]
        rows.append(
            figures(kind + ("_holdout" if holdout else ""), items, [answer(item) for item in items])
        )
    return rows


def evaluate_store(
    folder: Path, paradigm: str, holdout: bool = False, rule: Rule | None = None
) -> list[Figures]:
    """Evaluates a checkpoint folder on one thread."""
    torch.set_num_threads(1)
    answerer = ReferenceAnswerer(
        folder / "model.safetensors", load_codec(folder), paradigm, rule or Rule()
    )
    return evaluate(answerer, holdout=holdout)
