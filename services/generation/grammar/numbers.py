"""Numbers between bounds as JSON writes them: no leading zeros, no exponent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from services.generation.grammar.language import (
    EMPTY,
    Character,
    Language,
    Repeat,
    Text,
    either,
    optional,
    series,
)

MAX_LISTED = 4096
"""Most multiples that are written out one by one."""

_DIGIT = Character(((0x30, 0x39),))
_NOT_ZERO = Character(((0x31, 0x39),))
_DIGITS = Repeat(_DIGIT, 0, None)


class NotRegular(ValueError):
    """A set of numbers that no regular expression of a bearable size describes."""


def integers(least: int | None = None, most: int | None = None, step: int = 1) -> Language | None:
    """Whole numbers from ``least`` to ``most`` that are multiples of ``step``; None: there is none.

    Raises NotRegular for multiples that are neither few nor told by their last digits.
    """
    if least is not None and most is not None:
        if least > most:
            return None
        if step > 1:
            return _listed(range(-(-least // step) * step, most + 1, step))
    if step > 1:
        return _multiples(least, most, step)
    options: list[Language] = []
    if least is None or least < 0:
        low = 1 if most is None else max(1, -most)
        negative = _naturals(low, None if least is None else -least)
        options += [series(Text("-"), part) for part in negative]
    if most is None or most >= 0:
        options += _naturals(max(0, least or 0), most)
    return either(*options) if options else None


def _listed(values: range) -> Language | None:
    if len(values) > MAX_LISTED:
        raise NotRegular(f"has more than {MAX_LISTED} multiples between its bounds")
    return either(*(Text(str(value)) for value in values)) if values else None


def _multiples(least: int | None, most: int | None, step: int) -> Language:
    """Multiples told by their last digits: step divides a power of ten, no bound but 0 or 1."""
    places = next((n for n in range(1, 5) if 10**n % step == 0), None)
    if places is None or least not in (None, 0, 1) or most not in (None, 0, -1):
        raise NotRegular("has multiples that go on without end and no pattern of last digits")
    short = [str(n) for n in range(step, 10**places, step)]
    long = [str(n).zfill(places) for n in range(0, 10**places, step)]
    ends = either(*map(Text, long))
    positive = either(*map(Text, short), series(_NOT_ZERO, _DIGITS, ends))
    options: list[Language] = [Text("0")] if least != 1 and most != -1 else []
    if most is None:
        options.append(positive)
    if least is None:
        options.append(series(Text("-"), positive))
    return either(*options)


def _naturals(least: int, most: int | None) -> list[Language]:
    """Numbers from ``least`` >= 0 on, by their count of digits."""
    if most is not None and least > most:
        return []
    options: list[Language] = []
    digits = len(str(least))
    longest = digits if most is None else len(str(most))
    for count in range(digits, longest + 1):
        low = str(max(least, 10 ** (count - 1) if count > 1 else 0))
        high = str(10**count - 1 if most is None else min(most, 10**count - 1))
        options.append(_same_length(low, high))
    if most is None:
        options.append(series(_NOT_ZERO, Repeat(_DIGIT, digits, None)))
    return options


def _same_length(low: str, high: str) -> Language:
    """Digit strings from ``low`` to ``high`` of one length."""
    if set(low) == {"0"} and set(high) == {"9"}:
        return Repeat(_DIGIT, len(low), len(low))
    first, last = int(low[0]), int(high[0])
    if len(low) == 1:
        return _digit(first, last)
    if first == last:
        return series(Text(low[0]), _same_length(low[1:], high[1:]))
    nines, zeros = "9" * (len(low) - 1), "0" * (len(low) - 1)
    options = []
    if low[1:] != zeros:
        options.append(series(Text(low[0]), _same_length(low[1:], nines)))
        first += 1
    ending = None
    if high[1:] != nines:
        ending = series(Text(high[0]), _same_length(zeros, high[1:]))
        last -= 1
    if first <= last:
        options.append(series(_digit(first, last), _same_length(zeros, nines)))
    return either(*options, *([ending] if ending else []))


def _digit(first: int, last: int) -> Language:
    return Character(((ord("0") + first, ord("0") + last),))


@dataclass(frozen=True, slots=True)
class Bound:
    """One end of an interval of decimals."""

    value: Decimal
    inclusive: bool = True

    def mirrored(self) -> Bound:
        """The same distance on the other side of zero."""
        return Bound(-self.value, self.inclusive)


def decimals(least: Bound | None = None, most: Bound | None = None) -> Language | None:
    """Decimal numbers within the bounds; None: there is none."""
    zero, beyond_zero = Bound(Decimal(0)), Bound(Decimal(0), inclusive=False)
    options: list[Language] = []
    if least is None or least.value < 0:
        low = beyond_zero if most is None or most.value >= 0 else most.mirrored()
        high = None if least is None else least.mirrored()
        options += [series(Text("-"), part) for part in _positive(low, high)]
    if most is None or most.value >= 0:
        low = least if least is not None and least.value >= 0 else zero
        options += _positive(low, most)
    return either(*options) if options else None


def _positive(low: Bound, high: Bound | None) -> Iterator[Language]:
    """Numbers from ``low`` >= 0 to ``high``, by their whole part."""
    first, below = _split(low)
    last, above = (None, None) if high is None else _split(high)
    if last is not None and first > last:
        return
    if first == last:
        yield from _with_whole(first, _between(below, above))
        return
    yield from _with_whole(first, _between(below, None))
    for whole in _naturals(first + 1, None if last is None else last - 1):
        yield series(whole, _fraction(_Range(None, None)) or EMPTY)
    if last is not None:
        yield from _with_whole(last, _Range(None, above))


def _split(bound: Bound) -> tuple[int, _Tail]:
    whole, _, fraction = f"{bound.value:f}".partition(".")
    return int(whole), _Tail(fraction.rstrip("0"), bound.inclusive)


@dataclass(frozen=True, slots=True)
class _Tail:
    """Digits behind the point, without closing zeros, as a bound."""

    digits: str
    inclusive: bool

    def rest(self) -> _Tail:
        return _Tail(self.digits[1:], self.inclusive)


@dataclass(frozen=True, slots=True)
class _Range:
    """Fractions from ``low`` to ``high``; None: any."""

    low: _Tail | None
    high: _Tail | None

    def has_zero(self) -> bool:
        above = self.low is None or (not self.low.digits and self.low.inclusive)
        return above and (self.high is None or bool(self.high.digits) or self.high.inclusive)

    def after(self, digit: int) -> _Range | None:
        """What the digits behind ``digit`` may be; None: nothing."""
        low, high = self.low, self.high
        if low is not None:
            first = int(low.digits[0]) if low.digits else 0
            if digit < first:
                return None
            low = None if digit > first else low.rest()
        if high is not None:
            first = int(high.digits[0]) if high.digits else 0
            if digit > first:
                return None
            high = None if digit < first else high.rest()
        return _between(low, high)


def _between(low: _Tail | None, high: _Tail | None) -> _Range:
    """The range; no bound where every fraction reaches ``low``."""
    trivial = low is not None and not low.digits and low.inclusive
    return _Range(None if trivial else low, high)


def _with_whole(whole: int, fractions: _Range) -> Iterator[Language]:
    tail = _fraction(fractions)
    if tail is not None:
        yield series(Text(str(whole)), tail)


def _fraction(fractions: _Range) -> Language | None:
    """The part from the point on, absent where that means a whole number within the range."""
    digits = _digits(fractions)
    pointed = None if digits is None else series(Text("."), digits)
    if not fractions.has_zero():
        return pointed
    return EMPTY if pointed is None else optional(pointed)


def _digits(fractions: _Range) -> Language | None:
    """One digit or more whose value lies in the range; None: there are none."""
    low, high = fractions.low, fractions.high
    if low is None and high is None:
        return Repeat(_DIGIT, 1, None)
    if high is not None and not high.digits:
        return Repeat(Text("0"), 1, None) if fractions.has_zero() else None
    if low is not None and not low.digits and high is None:
        beyond_zero = series(Repeat(Text("0"), 0, None), _NOT_ZERO)
        return series(beyond_zero, _DIGITS)
    options: list[Language] = []
    for digit in range(10):
        rest = fractions.after(digit)
        if rest is None:
            continue
        more = _digits(rest)
        if rest.has_zero():
            more = EMPTY if more is None else optional(more)
        if more is not None:
            options.append(series(Text(str(digit)), more))
    return either(*options) if options else None
