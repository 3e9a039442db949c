"""Log lines, whatever is thrown at them. Run in a process of their own: logging is global."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest


def _lines(body: str) -> list[dict[str, Any]]:
    """Runs ``body`` with logging set up and returns its output, line by line as JSON."""
    prelude = (
        "import asyncio, logging, structlog\n"
        "from services.chassis import log as braid_log\n"
        "braid_log.configure('unit')\n"
        "log = structlog.get_logger()\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", prelude + body], capture_output=True, text=True, check=True
    )
    return [json.loads(line) for line in run.stdout.splitlines()]


@pytest.mark.parametrize(
    "value",
    [
        "b'\\xff\\x00'",
        "'lone \\ud800 surrogate'",
        "object()",
        "{('a', 1): 2}",
        "type('Bad', (), {'__repr__': lambda self: 1 / 0})()",
        '\'SECRET\\n{"level":"error"}\'',
    ],
)
def test_any_value_is_one_json_line(value: str) -> None:
    """Bytes, surrogates, objects and forged lines all come out as one object."""
    [line] = _lines(f"log.info('event', value={value})")
    assert line["event"] == "event"
    assert line["level"] == "info"


def test_exceptions_are_logged_without_their_text() -> None:
    """An error's type and places are logged; its text, which may quote a request, is not."""
    body = (
        "try:\n    raise ValueError('SECRET-123')\n"
        "except ValueError:\n    log.error('failed', exc_info=True)\n"
        "    logging.getLogger('some.library').exception('failed too')\n"
    )
    lines = _lines(body)
    assert [line["error"] for line in lines] == ["ValueError", "ValueError"]
    assert "SECRET-123" not in json.dumps(lines)


def test_request_id_follows_its_task() -> None:
    """Two tasks that take turns keep their own request ids, in threads as well."""
    body = (
        "async def call(name, gate, mine):\n"
        "    with braid_log.request_context(name):\n"
        "        gate.set(); await mine.wait()\n"
        "        await asyncio.to_thread(log.info, 'in_thread', expected=name)\n"
        "        log.info('after', expected=name)\n"
        "async def main():\n"
        "    a, b = asyncio.Event(), asyncio.Event()\n"
        "    await asyncio.gather(call('one', a, b), call('two', b, a))\n"
        "    log.info('outside')\n"
        "asyncio.run(main())\n"
    )
    *inside, outside = _lines(body)
    assert len(inside) == 4
    assert all(line["request_id"] == line["expected"] for line in inside)
    assert "request_id" not in outside


def test_library_records_take_the_same_form() -> None:
    """A record of the standard logging module is a JSON line with level and service."""
    [line] = _lines("logging.getLogger('lib').warning('watch out: %s', 7)")
    assert line["event"] == "watch out: 7"
    assert (line["level"], line["service"]) == ("warning", "unit")
