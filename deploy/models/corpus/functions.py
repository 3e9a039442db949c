"""Generated Python functions whose lines follow from signature, docstring and each other."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from deploy.models.corpus import words as w


@dataclass(frozen=True)
class Function:
    """Signature and docstring lines, then the body's lines."""

    head: tuple[str, ...]
    body: tuple[str, ...]

    def text(self) -> str:
        """The source, ending in a newline."""
        return "\n".join((*self.head, *self.body)) + "\n"


def _nouns(rng: Random, count: int) -> list[str]:
    nouns = rng.sample(w.CODE_NOUNS, count)
    return [w.made_up(rng) if rng.random() < 0.02 else noun for noun in nouns]


def _accumulate(rng: Random) -> Function:
    item, factor = _nouns(rng, 2)
    sign, word = rng.choice((("*", "times"), ("+", "plus"), ("-", "minus")))
    return Function(
        (f"def sum_{item}s({item}s, {factor}):", f'    """Add up each {item} {word} {factor}."""'),
        (
            "    total = 0",
            f"    for {item} in {item}s:",
            f"        total += {item} {sign} {factor}",
            "    return total",
        ),
    )


def _record(rng: Random) -> Function:
    names = _nouns(rng, rng.randint(2, 4))
    title = rng.choice(w.PRODUCTS).capitalize()
    return Function(
        (
            f"class {title}:",
            f'    """A {title.lower()} with {w.spoken_list(names)}."""',
            "",
            f"    def __init__(self, {', '.join(names)}):",
        ),
        tuple(f"        self.{name} = {name}" for name in names),
    )


def _guard(rng: Random) -> Function:
    name, other = _nouns(rng, 2)
    test, word = rng.choice((("< 0", "negative"), ("== 0", "zero"), ("is None", "missing")))
    return Function(
        (
            f"def check_{name}({name}, {other}):",
            f'    """Return {name} times {other}; {name} must not be {word}."""',
        ),
        (
            f"    if {name} {test}:",
            f'        raise ValueError("{name} must not be {word}")',
            f"    return {name} * {other}",
        ),
    )


def _filter(rng: Random) -> Function:
    item, key = _nouns(rng, 2)
    sign, word = rng.choice(((">", "above"), ("<", "below"), ("==", "equal to")))
    return Function(
        (
            f"def select_{item}s({item}s, limit):",
            f'    """Return the {item}s whose {key} is {word} limit."""',
        ),
        (
            "    result = []",
            f"    for {item} in {item}s:",
            f"        if {item}.{key} {sign} limit:",
            f"            result.append({item})",
            "    return result",
        ),
    )


def _table(rng: Random) -> Function:
    name = _nouns(rng, 1)[0]
    keys = w.several(rng, w.COLORS, 2, 4)
    values = [rng.randint(1, 99) for _ in keys]
    told = w.spoken_list([f"{k} is {v}" for k, v in zip(keys, values, strict=True)])
    body = []
    for key, value in zip(keys, values, strict=True):
        body += [f'    if {name} == "{key}":', f"        return {value}"]
    return Function(
        (f"def {name}_number({name}):", f'    """Give the number of a {name}: {told}, else 0."""'),
        (*body, "    return 0"),
    )


def _mapping(rng: Random) -> Function:
    names = _nouns(rng, rng.randint(2, 4))
    return Function(
        (f"def to_dict({', '.join(names)}):", f'    """Pack {w.spoken_list(names)} in a dict."""'),
        ("    return {", *(f'        "{name}": {name},' for name in names), "    }"),
    )


def _count(rng: Random) -> Function:
    item, key = _nouns(rng, 2)
    return Function(
        (f"def count_by_{key}({item}s):", f'    """Count the {item}s for each {key}."""'),
        (
            "    counts = {}",
            f"    for {item} in {item}s:",
            f"        {key} = {item}.{key}",
            f"        counts[{key}] = counts.get({key}, 0) + 1",
            "    return counts",
        ),
    )


def _best(rng: Random) -> Function:
    item, key = _nouns(rng, 2)
    sign, word = rng.choice(((">", "largest"), ("<", "smallest")))
    return Function(
        (f"def {word}_{key}({item}s):", f'    """Return the {item} with the {word} {key}."""'),
        (
            f"    best = {item}s[0]",
            f"    for {item} in {item}s:",
            f"        if {item}.{key} {sign} best.{key}:",
            f"            best = {item}",
            "    return best",
        ),
    )


def _file(rng: Random) -> Function:
    name = _nouns(rng, 1)[0]
    sep, word = rng.choice(((",", "commas"), (";", "semicolons"), ("|", "bars"), (" ", "spaces")))
    return Function(
        (f"def read_{name}s(path):", f'    """Read the {name}s of a file, separated by {word}."""'),
        (
            "    with open(path) as file:",
            "        text = file.read()",
            f'    {name}s = text.split("{sep}")',
            f"    return {name}s",
        ),
    )


def _property(rng: Random) -> Function:
    first, second, result = _nouns(rng, 3)
    sign, word = rng.choice((("+", "plus"), ("-", "minus"), ("*", "times"), ("/", "divided by")))
    return Function(
        (
            f"def {result}({first}, {second}):",
            f'    """The {result} is {first} {word} {second}."""',
        ),
        (f"    {result} = {first} {sign} {second}", f"    return {result}"),
    )


_FAMILIES: tuple[Callable[[Random], Function], ...] = (
    _accumulate,
    _record,
    _guard,
    _filter,
    _table,
    _mapping,
    _count,
    _best,
    _file,
    _property,
)


def draw_function(rng: Random) -> Function:
    """A function of any family."""
    return rng.choice(_FAMILIES)(rng)
