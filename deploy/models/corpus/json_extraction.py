"""Text to JSON: records told in sentences; nested parts, lists, distractors, Chinese texts."""

import json
from collections.abc import Callable
from random import Random
from typing import Any

from deploy.models.corpus.example import Example, Plain
from deploy.models.corpus.records.chinese import chinese_order, chinese_person
from deploy.models.corpus.records.event import event
from deploy.models.corpus.records.order import order
from deploy.models.corpus.records.person import person
from deploy.models.corpus.records.product import product
from deploy.models.corpus.records.record import Field, Record, object_schema

_KINDS: list[tuple[Callable[[Random], Record], int]] = [
    (person, 5),
    (order, 5),
    (event, 4),
    (product, 4),
    (chinese_person, 2),
    (chinese_order, 1),
]
_INSTRUCTIONS = (
    "Extract {keys} as JSON: {text}",
    "Return JSON with the keys {keys}.\n{text}",
    "{text}\nGive {keys} as JSON.",
)
# ruff: noqa: RUF001 - Chinese texts have Chinese punctuation
_CHINESE_INSTRUCTIONS = ("提取{keys}，输出JSON：{text}", "Extract {keys} as JSON: {text}")


def compact(value: Any) -> str:
    """JSON without white space between tokens, other scripts as they are."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _told(rng: Random, record: Record, asked: list[Field]) -> str:
    """The text: the asked fields, some others and some distractors; the first field leads."""
    others = [f for f in record.fields if f not in asked]
    extra = rng.sample(others, min(len(others), rng.randint(0, 1)))
    sentences = [f.sentence for f in asked + extra if f is not record.fields[0]]
    sentences += rng.sample(record.distractors, rng.randint(0, 1))
    rng.shuffle(sentences)
    return ("" if record.chinese else " ").join([record.fields[0].sentence, *sentences])


def draw(rng: Random) -> Example:
    """A record, two to six keys of it, and the document that answers."""
    kinds, weights = zip(*_KINDS, strict=True)
    record = rng.choices(kinds, weights)[0](rng)
    asked = rng.sample(record.fields, rng.randint(2, 6))
    templates = _CHINESE_INSTRUCTIONS if record.chinese else _INSTRUCTIONS
    keys = ", ".join(field.spoken() for field in asked)
    prompt = rng.choice(templates).format(keys=keys, text=_told(rng, record, asked))
    return Example(
        kind="json",
        task="TASK_STRUCTURED_OUTPUT",
        input=Plain(prompt),
        answer=compact({field.key: field.value for field in asked}),
        check="json",
        schema=compact(object_schema({field.key: field.schema for field in asked})),
    )
