"""JSON that people edit by hand, read without guessing what they meant."""

from __future__ import annotations

import codecs
import json
from math import isinf
from typing import Any, NoReturn


def load(data: bytes) -> Any:
    """The JSON value in ``data``; raises ValueError for anything doubtful.

    Refused beside broken JSON: a byte order mark, nothing at all, a key given twice,
    NaN and numbers beyond a double. White space around the value is fine.
    """
    if data.startswith(codecs.BOM_UTF8):
        raise ValueError("starts with a byte order mark")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8") from None
    if not text.strip():
        raise ValueError("is empty")
    try:
        return json.loads(
            text, object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_finite
        )
    except json.JSONDecodeError as error:
        raise ValueError(
            f"is not JSON: {error.msg} (line {error.lineno}, column {error.colno})"
        ) from None
    except RecursionError:
        raise ValueError("is nested too deep") from None


def load_object(data: bytes) -> dict[str, Any]:
    """The JSON object in ``data``; null, a list or JSON inside a string is none."""
    value = load(data)
    if isinstance(value, str):
        raise ValueError("is a JSON string, not an object: quoted once too often")
    if not isinstance(value, dict):
        raise ValueError(f"is {kind(value)}, not an object")
    return value


def kind(value: Any) -> str:
    """What ``value`` is, in JSON's words."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    names = {str: "a string", int: "a number", float: "a number", list: "a list"}
    return names.get(type(value), "an object")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"names {twice!r} twice")
    return found


def _finite(text: str) -> float:
    number = float(text)
    if isinf(number):
        raise ValueError("has a number beyond the range of a double")
    return number


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"has {constant}, which is not JSON")
