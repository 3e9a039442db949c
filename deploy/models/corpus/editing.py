"""Edits: one or two instructions on a text or a piece of code, answered by the whole new text."""

import re
from collections.abc import Callable
from random import Random

from deploy.models.corpus import words as w
from deploy.models.corpus.example import Edit, Example, Infill
from deploy.models.corpus.functions import draw_function

Change = tuple[str, str]
"""An instruction and the text after it."""


def _letter(rng: Random) -> str:
    """Three to five plain sentences."""
    who, other = rng.choice(w.FIRST_NAMES), rng.choice(w.FIRST_NAMES)
    thing, city = w.pick(rng, w.PRODUCTS), w.pick(rng, w.CITIES)
    sentences = [
        f"{who} bought a {rng.choice(w.ADJECTIVES)} {thing} in {city}.",
        f"The {thing} cost {rng.randint(5, 500)} euros.",
        f"{other} will bring it on {rng.choice(w.WEEKDAYS)}.",
        f"We meet in {w.pick(rng, w.CITIES)} at {rng.randint(1, 12)} o'clock.",
        f"Please call {other} about the {w.pick(rng, w.PRODUCTS)}.",
        f"The talk on {w.pick(rng, w.TOPICS)} was {rng.choice(w.ADJECTIVES)}.",
        f"{who} works as a {rng.choice(w.JOBS)} in {city}.",
    ]
    return " ".join(rng.sample(sentences, rng.randint(2, 4)))


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


def _words_of(text: str) -> list[str]:
    return sorted(set(re.findall(r"[A-Za-z]{4,}", text)))


def _replace(rng: Random, text: str) -> Change:
    """Every occurrence of one word becomes another."""
    old = rng.choice(_words_of(text))
    pool = w.CITIES if old[0].isupper() else w.PRODUCTS + w.ADJECTIVES
    new = w.pick(rng, pool, rare=0.08)
    instruction = rng.choice(
        (f"Replace {old} with {new}.", f"Change {old} to {new}.", f"Use {new} instead of {old}.")
    )
    return instruction, re.sub(_whole_word(old), new, text)


def _rename(rng: Random, text: str) -> Change:
    """A whole identifier, not its look-alikes."""
    names = sorted(
        {
            n
            for n in re.findall(r"\b[a-z_]{3,}\b", text)
            if n not in {"def", "for", "class", "return", "with", "raise"}
        }
    )
    old = rng.choice(names)
    new = (
        rng.choice(w.CODE_NOUNS)
        if rng.random() < 0.7
        else f"{rng.choice(w.CODE_VERBS)}_{rng.choice(w.CODE_NOUNS)}"
    )
    instruction = rng.choice((f"Rename {old} to {new}.", f"Call {old} {new} instead."))
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


def _typo(rng: Random, text: str) -> Change:
    """The answer is the clean text; `_broken` makes the one with a typo."""
    return rng.choice(("Fix the spelling.", "Correct the typo.")), text


def _broken(rng: Random, text: str) -> str:
    """The text with two neighboring letters of one word swapped."""
    words = list(re.finditer(r"[a-z]{5,}", text))
    if not words:
        return text
    word = rng.choice(words)
    spots = [i for i in range(word.start() + 1, word.end() - 2) if text[i] != text[i + 1]]
    if not spots:
        return text
    i = rng.choice(spots)
    return text[:i] + text[i + 1] + text[i] + text[i + 2 :]


def _drop_sentence(rng: Random, text: str) -> Change:
    """The first, the last or a named sentence goes."""
    sentences = re.findall(r"[^.]+\.", text)
    if len(sentences) < 2:
        return _replace(rng, text)
    which = rng.choice(("first", "last"))
    kept = sentences[1:] if which == "first" else sentences[:-1]
    return f"Delete the {which} sentence.", "".join(kept).strip()


def _number(rng: Random, text: str) -> Change:
    numbers = re.findall(r"\d+", text)
    if not numbers:
        return _replace(rng, text)
    old, new = rng.choice(numbers), str(rng.randint(2, 999))
    return rng.choice((f"Change {old} to {new}.", f"Replace {old} with {new}.")), re.sub(
        rf"\b{old}\b", new, text
    )


def _quote(rng: Random, text: str) -> Change:
    word = rng.choice(_words_of(text))
    return f"Put {word} in quotes.", re.sub(_whole_word(word), f'"{word}"', text)


def _comment(rng: Random, text: str) -> Change:
    note = f"{rng.choice(w.CODE_VERBS)} the {rng.choice(w.CODE_NOUNS)}"
    return rng.choice(
        (f"Add the comment {note} at the top.", f"Put a comment above: {note}.")
    ), f"# {note}\n{text}"


_SOURCES: tuple[
    tuple[Callable[[Random], str], tuple[Callable[[Random, str], Change], ...]], ...
] = (
    (_letter, (_replace, _replace, _drop_sentence, _number, _quote)),
    (_settings, (_set_value, _set_value, _remove_key, _add_key, _rename)),
    (_code, (_rename, _rename, _replace, _comment, _number)),
)


def draw(rng: Random) -> Example:
    """One change, or two in one instruction, or a typo to find."""
    source, changes = rng.choice(_SOURCES)
    text = source(rng)
    if source is _letter and rng.random() < 0.1:
        instruction, wanted = _typo(rng, text)
        return _example(Edit(_broken(rng, text), instruction), wanted)
    instruction, wanted = rng.choice(changes)(rng, text)
    if rng.random() < 0.1:
        second, wanted = rng.choice(changes)(rng, wanted)
        instruction = f"{instruction} {second}"
    return _example(Edit(text, instruction), wanted)


def _example(edit: Edit, wanted: str) -> Example:
    return Example("edit", "TASK_TEXT_EDITING", edit, wanted, "exact")


def draw_span(rng: Random) -> Example:
    """A word or number cut out of a letter that names it again: edits of spans are infills."""
    text = _letter(rng)
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
