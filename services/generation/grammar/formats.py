"""The string formats that are regular and of a bearable size, in one plain spelling each.

Every text is valid under RFC 3339, 1123, 4122 or 5321; not every valid text is in the language.
"""

from __future__ import annotations

from collections.abc import Mapping

from services.generation.grammar.pattern import Pattern, parse_pattern

_MONTH_DAYS = (
    "(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])",
    "(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)",
    "02-(?:0[1-9]|1[0-9]|2[0-8])",
)
_LEAP_YEAR = "(?:[0-9][0-9](?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)"
_YEAR = "(?:[0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"
_DATE = f"(?:{_YEAR}-(?:{'|'.join(_MONTH_DAYS)})|{_LEAP_YEAR}-02-29)"
_TIME = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?"
_OFFSET = "(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
_BYTE = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_LABEL = "[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?"
_HOST = rf"{_LABEL}(?:\.{_LABEL}){{0,3}}"
_WORD = "[A-Za-z0-9_]{1,16}"

_PATTERNS = {
    "date": _DATE,
    "time": _TIME + _OFFSET,
    "date-time": f"{_DATE}T{_TIME}{_OFFSET}",
    "uuid": "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    "ipv4": rf"(?:{_BYTE}\.){{3}}{_BYTE}",
    "hostname": _HOST,
    "email": rf"{_WORD}(?:[.+-]{_WORD}){{0,2}}@{_HOST}\.[a-z]{{2,12}}",
}
FORMATS: Mapping[str, Pattern] = {
    name: parse_pattern(f"^{text}$") for name, text in _PATTERNS.items()
}
