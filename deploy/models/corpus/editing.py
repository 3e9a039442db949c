"""Edits: an instruction about a letter, settings or code, answered by the whole new text."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from deploy.models.corpus import words as w
from deploy.models.corpus.example import Edit, Example, Infill
from deploy.models.corpus.functions import draw_function

Change = tuple[str, str]
"""An instruction and the text after it."""

Slots = Sequence[tuple[str, Sequence[str]]]
"""The words a letter was filled with, each with the pool it came from."""


@dataclass(frozen=True)
class Letter:
    """Two to four plain sentences."""

    sentences: tuple[str, ...]
    slots: Slots

    def text(self) -> str:
        """The sentences as one paragraph."""
        return " ".join(self.sentences)


_PRICES = [str(price) for price in range(13, 501)]
_HOURS = [str(hour) for hour in range(1, 13)]
_TEMPLATES: tuple[tuple[str, tuple[Sequence[str], ...]], ...] = (
    ("{} bought a {} {} in {}.", (w.FIRST_NAMES, w.ADJECTIVES, w.PRODUCTS, w.CITIES)),
    ("The {} cost {} euros.", (w.PRODUCTS, _PRICES)),
    ("{} will bring it on {}.", (w.FIRST_NAMES, w.WEEKDAYS)),
    ("We meet in {} at {} o'clock.", (w.CITIES, _HOURS)),
    ("Please call {} about the {}.", (w.FIRST_NAMES, w.PRODUCTS)),
    ("The talk on {} was {}.", (w.TOPICS, w.ADJECTIVES)),
    ("{} works as a {} in {}.", (w.FIRST_NAMES, w.JOBS, w.CITIES)),
)


def _letter(rng: Random) -> Letter:
    """Sentences that share a person, a product and a city now and then."""
    common = {id(pool): rng.choice(pool) for pool in (w.FIRST_NAMES, w.PRODUCTS, w.CITIES)}
    sentences: list[str] = []
    slots: list[tuple[str, Sequence[str]]] = []
    for template, pools in rng.sample(_TEMPLATES, rng.randint(2, 4)):
        words = [
            common[id(pool)] if id(pool) in common and rng.random() < 0.4 else rng.choice(pool)
            for pool in pools
        ]
        sentences.append(template.format(*words))
        slots += zip(words, pools, strict=True)
    return Letter(tuple(sentences), slots)


def _settings(rng: Random) -> str:
    """A few `key = value` lines."""
    keys = rng.sample(w.CODE_NOUNS, rng.randint(3, 5))
    values = [
        str(rng.randint(0, 999)) if rng.random() < 0.6 else rng.choice(("true", "false", *w.COLORS))
        for _ in keys
    ]
    return "\n".join(f"{key} = {value}" for key, value in zip(keys, values, strict=True))


def _code(rng: Random) -> str:
    return draw_function(rng).text().rstrip("\n")


def _whole_word(word: str) -> str:
    return rf"(?<![\w]){re.escape(word)}(?![\w])"


def _substitution(rng: Random, text: str, old: str, new: str) -> Change:
    instruction = rng.choice(
        (f"Replace {old} with {new}.", f"Change {old} to {new}.", f"Use {new} instead of {old}.")
    )
    return instruction, re.sub(_whole_word(old), new, text)


def _replace(rng: Random, letter: Letter) -> Change:
    """Every occurrence of one word becomes another of its kind."""
    old, pool = rng.choice(letter.slots)
    new = rng.choice(pool)
    return _substitution(rng, letter.text(), old, new)


def _drop_sentence(rng: Random, letter: Letter) -> Change:
    which = rng.choice(("first", "last"))
    kept = letter.sentences[1:] if which == "first" else letter.sentences[:-1]
    return f"Delete the {which} sentence.", " ".join(kept)


def _rename(rng: Random, text: str) -> Change:
    """A whole identifier, not its look-alikes."""
    names = re.findall(r"\b[a-z_]{3,}\b", text)
    known = sorted({n for n in names if n in w.CODE_NOUNS}) or sorted(set(names))
    old = rng.choice(known)
    new = rng.choice([noun for noun in w.CODE_NOUNS if noun not in names])
    instruction = rng.choice((f"Rename {old} to {new}.", f"Rename the {old} to {new}."))
    return instruction, re.sub(_whole_word(old), new, text)


def _set_value(rng: Random, text: str) -> Change:
    """One key of the settings gets a new value."""
    key = rng.choice([line.split(" = ")[0] for line in text.split("\n") if " = " in line])
    value = str(rng.randint(0, 999))
    instruction = rng.choice((f"Set {key} to {value}.", f"Change the {key} to {value}."))
    return instruction, re.sub(rf"(?m)^{re.escape(key)} = .*$", f"{key} = {value}", text)


def _remove_key(rng: Random, text: str) -> Change:
    lines = text.split("\n")
    if len(lines) < 2:
        return _set_value(rng, text)
    gone = rng.choice(lines)
    key = gone.split(" = ")[0]
    return rng.choice((f"Remove {key}.", f"Delete the line of {key}.")), "\n".join(
        line for line in lines if line != gone
    )


def _add_key(rng: Random, text: str) -> Change:
    key = rng.choice([noun for noun in w.CODE_NOUNS if f"{noun} = " not in text])
    value = rng.randint(0, 999)
    return rng.choice(
        (f"Add {key} = {value} at the end.", f"Append {key} = {value}.")
    ), f"{text}\n{key} = {value}"


_FIXED_WORDS = sorted({word for t, _ in _TEMPLATES for word in re.findall(r"[a-z]{5,}", t)})


def _typo(rng: Random, letter: Letter) -> tuple[Edit, str]:
    """Two neighboring letters of one ordinary word swapped; the answer is the clean text."""
    text = letter.text()
    words = [m for m in re.finditer(r"[a-z]+", text) if m.group() in _FIXED_WORDS]
    spots = [i for m in words for i in range(m.start() + 1, m.end() - 2) if text[i] != text[i + 1]]
    i = rng.choice(spots)
    broken = text[:i] + text[i + 1] + text[i] + text[i + 2 :]
    return Edit(broken, rng.choice(("Fix the spelling.", "Correct the typo."))), text


def _number(rng: Random, text: str) -> Change:
    """Every occurrence of one number of the code becomes another, if it has any."""
    numbers = re.findall(r"(?<!\w)\d{2,}(?!\w)", text)
    if not numbers:
        return _rename(rng, text)
    return _substitution(rng, text, rng.choice(numbers), str(rng.randint(10, 99)))


def _comment(rng: Random, text: str) -> Change:
    note = f"{rng.choice(w.CODE_VERBS)} the {rng.choice(w.CODE_NOUNS)}"
    return rng.choice(
        (f"Add the comment {note} at the top.", f"Put a comment above: {note}.")
    ), f"# {note}\n{text}"


_SETTINGS_CHANGES = (_set_value, _set_value, _remove_key, _add_key, _rename)
_CODE_CHANGES = (_rename, _rename, _comment, _number)


def draw(rng: Random) -> Example:
    """One change to a letter, to settings or to a piece of code."""
    kind = rng.choice(("letter", "letter", "settings", "code"))
    if kind == "letter":
        return _letter_edit(rng, _letter(rng))
    source, changes = (
        (_settings(rng), _SETTINGS_CHANGES) if kind == "settings" else (_code(rng), _CODE_CHANGES)
    )
    instruction, wanted = rng.choice(changes)(rng, source)
    return _example(Edit(source, instruction), wanted)


def _letter_edit(rng: Random, letter: Letter) -> Example:
    if rng.random() < 0.1:
        return _example(*_typo(rng, letter))
    change = _drop_sentence if rng.random() < 0.2 else _replace
    instruction, wanted = change(rng, letter)
    return _example(Edit(letter.text(), instruction), wanted)


def _example(edit: Edit, wanted: str) -> Example:
    return Example("edit", "TASK_TEXT_EDITING", edit, wanted, "exact")


def draw_span(rng: Random) -> Example:
    """A word or number cut out of a letter that names it again: edits of spans are infills."""
    text = _letter(rng).text()
    words = list(re.finditer(r"[A-Za-z]{4,}|\d+", text))
    repeated = [m for m in words if len(re.findall(_whole_word(m.group()), text)) > 1] or words
    gap = rng.choice(repeated)
    return Example(
        "span",
        "TASK_TEXT_EDITING",
        Infill(text[: gap.start()], text[gap.end() :]),
        gap.group(),
        "exact",
    )


def draw_copying(rng: Random) -> Example:
    """Made-up words and numbers to copy, with one of them replaced: more copying a token."""
    words = [
        w.made_up(rng) if rng.random() < 0.7 else str(rng.randint(2, 9999))
        for _ in range(rng.randint(6, 24))
    ]
    old, new = rng.choice(words), w.made_up(rng)
    wanted = [new if word == old else word for word in words]
    edit = Edit(" ".join(words), f"Replace {old} with {new}.")
    return Example("copying", "TASK_TEXT_EDITING", edit, " ".join(wanted), "exact")
