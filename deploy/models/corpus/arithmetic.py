"""Arithmetic with a visible chain: word problems and plain expressions."""

from random import Random

from deploy.models.corpus.example import Example, Plain
from deploy.models.corpus.words import FIRST_NAMES, PRODUCTS, made_up

LARGEST = 99

_PLUS = (
    "{who} buys {n} more.",
    "Then {n} more arrive.",
    "A friend gives {who} {n} {things}.",
    "{who} finds another {n}.",
    "{n} are added.",
)
_MINUS = (
    "{who} sells {n}.",
    "Then {n} break.",
    "{who} gives away {n} {things}.",
    "{n} are lost.",
    "{who} uses {n} of them.",
)
_TIMES = (
    "The number grows {n} times.",
    "After that {who} has {n} times as many.",
    "The stock is multiplied by {n}.",
)
_START = (
    "{who} has {n} {things}.",
    "There are {n} {things} in the shop of {who}.",
    "{who} starts with {n} {things}.",
)
_ASK = (
    "How many {things} are there now?",
    "How many {things} are left?",
    "What is the final number of {things}?",
)
_TEXTS = {"+": _PLUS, "-": _MINUS, "*": _TIMES}


def _operation(rng: Random, value: int) -> tuple[str, int]:
    """A step that keeps the running value within 1..LARGEST."""
    kinds = ["+"] if value < 6 else ["+", "-"]
    if value <= LARGEST // 4:
        kinds.append("*")
    if value + 2 > LARGEST:
        kinds.remove("+")
    kind = rng.choice(kinds)
    if kind == "+":
        return kind, rng.randint(2, min(40, LARGEST - value))
    if kind == "-":
        return kind, rng.randint(2, min(40, value - 1))
    return kind, rng.randint(2, min(5, LARGEST // value))


def _apply(value: int, kind: str, n: int) -> int:
    return {"+": value + n, "-": value - n, "*": value * n}[kind]


def _steps(rng: Random, start: int) -> list[tuple[str, int]]:
    value, steps = start, []
    for _ in range(rng.randint(2, 4)):
        kind, n = _operation(rng, value)
        steps.append((kind, n))
        value = _apply(value, kind, n)
    return steps


def _chain(start: int, steps: list[tuple[str, int]]) -> tuple[str, str]:
    """The written chain and the final number."""
    value, lines = start, []
    for kind, n in steps:
        result = _apply(value, kind, n)
        lines.append(f"{value}{kind}{n}={result}")
        value = result
    return "; ".join(lines), str(value)


def _story(rng: Random, start: int, steps: list[tuple[str, int]]) -> str:
    who = rng.choice(FIRST_NAMES) if rng.random() < 0.9 else made_up(rng).capitalize()
    things = rng.choice(PRODUCTS) + "s"
    lines = [rng.choice(_START).format(who=who, n=start, things=things)]
    lines += [rng.choice(_TEXTS[kind]).format(who=who, n=n, things=things) for kind, n in steps]
    lines.append(rng.choice(_ASK).format(things=things))
    return " ".join(lines)


def _expression(rng: Random, start: int, steps: list[tuple[str, int]]) -> str:
    text = f"Start with {start}"
    for kind, n in steps:
        word = {"+": "add", "-": "subtract", "*": "multiply by"}[kind]
        text += f", {word} {n}"
    return text + rng.choice(
        (". What do you get?", ". Give the result.", ". Compute step by step.")
    )


def draw(rng: Random) -> Example:
    """A problem of two to four steps; one in twelve asks for the answer without its chain."""
    start = rng.randint(2, 50)
    steps = _steps(rng, start)
    story = rng.random() < 0.7
    prompt = _story(rng, start, steps) if story else _expression(rng, start, steps)
    thinking, answer = _chain(start, steps)
    return Example(
        kind="chain",
        task="TASK_REASONING" if story else "TASK_MATH",
        input=Plain(prompt),
        answer=answer,
        check="answer",
        thinking=thinking,
        thinking_off=rng.random() < 1 / 12,
    )


def draw_drill(rng: Random) -> Example:
    """Several separate sums: many more facts a token than word problems hold."""
    facts = []
    for _ in range(rng.randint(1, 14)):
        value = rng.randint(2, LARGEST)
        kind, n = _operation(rng, value)
        facts.append((f"{value}{kind}{n}", _apply(value, kind, n)))
    prompt = "Compute " + "; ".join(left for left, _ in facts)
    answer = "; ".join(f"{left}={right}" for left, right in facts)
    return Example("drill", "TASK_MATH", Plain(prompt), answer, "exact")
