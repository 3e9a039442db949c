"""JSON logs: one object a line, events not sentences, never content.

Records of libraries that use ``logging`` come out in the same form. Our own lines do
not go through it: a line for each call would then cost three times as much.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import structlog
from structlog.typing import EventDict, Processor

_ROOT = logging.getLogger()

LEVELS = ("debug", "info", "warning", "error")
_NUMBERS = {name: getattr(logging, name.upper()) for name in LEVELS}


def configure(service: str, level: str = "info") -> None:
    """Sends all logs of this process to standard output as JSON lines.

    ``service`` stands in every line. Called once, before anything logs.
    """
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _stamp(service),
        _without_exception_text,
    ]
    structlog.configure(
        processors=[_drop_below_level, *shared, _render],
        logger_factory=structlog.WriteLoggerFactory(sys.stdout),
        wrapper_class=structlog.make_filtering_bound_logger(logging.NOTSET),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, _render],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())


def set_level(level: str) -> None:
    """Changes what is logged from now on; ``level`` is one of LEVELS."""
    logging.getLogger().setLevel(level.upper())


@contextmanager
def request_context(request_id: str) -> Iterator[None]:
    """Puts ``request_id`` on every line logged inside, in this task only."""
    with structlog.contextvars.bound_contextvars(request_id=request_id):
        yield


def _drop_below_level(_logger: Any, method: str, event: EventDict) -> EventDict:
    """Asks the root logger, whose level may change at any time."""
    if not _ROOT.isEnabledFor(_NUMBERS.get(method, logging.ERROR)):
        raise structlog.DropEvent
    return event


def _stamp(service: str) -> Processor:
    def stamp(_logger: Any, _method: str, event: EventDict) -> EventDict:
        event["service"] = service
        return event

    return stamp


def _without_exception_text(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """Replaces exc_info by the error's type and the places it passed.

    The text of an exception may quote the request, so it stays out.
    """
    given = event.pop("exc_info", None)
    error = sys.exc_info()[1] if given is True else given
    if isinstance(error, tuple):
        error = error[1]
    if isinstance(error, BaseException):
        event["error"] = type(error).__name__
        event["stack"] = _places(error)
    return event


def _places(error: BaseException) -> list[str]:
    places = []
    frame = error.__traceback__
    while frame is not None:
        code = frame.tb_frame.f_code
        places.append(f"{code.co_filename}:{frame.tb_lineno} {code.co_qualname}")
        frame = frame.tb_next
    return places[-12:]


def _render(_logger: Any, _method: str, event: EventDict) -> str:
    """One JSON object whatever the event holds; a renderer must never raise."""
    try:
        return json.dumps(event, default=_as_text)
    except (TypeError, ValueError, RecursionError):
        return json.dumps({str(key): _plain(value) for key, value in event.items()})


def _plain(value: object) -> object:
    return value if isinstance(value, str | int | float | None) else _as_text(value)


def _as_text(value: object) -> str:
    try:
        return repr(value)
    except Exception:  # an object's own repr may fail; the log line must not
        return f"<{type(value).__name__}>"
