"""Code completion: a gap in a generated function, or a body for a signature."""

import re
from random import Random

from deploy.models.corpus.example import Example, Infill, Plain
from deploy.models.corpus.functions import Function, draw_function


def _line_gap(rng: Random, lines: list[str], first: int) -> tuple[str, str, str]:
    """One or two whole body lines."""
    start = rng.randrange(first, len(lines))
    end = min(len(lines), start + rng.randint(1, 2))
    before = "".join(line + "\n" for line in lines[:start])
    after = "".join(line + "\n" for line in lines[end:])
    return before, "".join(line + "\n" for line in lines[start:end]), after


def _tail_gap(rng: Random, lines: list[str], first: int) -> tuple[str, str, str]:
    """The end of one body line, cut where a word begins."""
    at = rng.randrange(first, len(lines))
    line = lines[at]
    cuts = [m.start() for m in re.finditer(r"\w+", line)]
    cut = rng.choice(cuts) if cuts else len(line) - len(line.lstrip())
    before = "".join(text + "\n" for text in lines[:at]) + line[:cut]
    return before, line[cut:], "\n" + "".join(text + "\n" for text in lines[at + 1 :])


def _gap(rng: Random, function: Function) -> tuple[str, str, str]:
    lines = [*function.head, *function.body]
    kind = _line_gap if rng.random() < 0.6 else _tail_gap
    return kind(rng, lines, len(function.head))


def draw(rng: Random) -> Example:
    """A gap whose content follows from both sides, sometimes with another function above."""
    prefix, middle, suffix = _gap(rng, draw_function(rng))
    if rng.random() < 0.2:
        prefix = draw_function(rng).text() + "\n\n" + prefix
    return Example("infill", "TASK_CODE_COMPLETION", Infill(prefix, suffix), middle, "exact")


def draw_body(rng: Random) -> Example:
    """Signature and docstring in, body out."""
    function = draw_function(rng)
    head = "".join(line + "\n" for line in function.head)
    prompt = head if rng.random() < 0.5 else "Complete this function:\n" + head
    return Example(
        "code", "TASK_CODE_COMPLETION", Plain(prompt), "\n".join(function.body) + "\n", "exact"
    )
