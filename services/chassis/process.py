"""A service process from its first line to its exit code."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

import structlog

from services import __version__
from services.chassis import log
from services.chassis.errors import ServiceError
from services.chassis.settings import ProcessSettings, SettingError, Settings

EXIT_FAILED = 1
EXIT_USAGE = 2

S = TypeVar("S", bound=ProcessSettings)

Check = Callable[[S, Mapping[str, str], "Stop"], Awaitable[None]]
"""A dry run: gets the settings and, by field, what set each one."""


class StartFailure(Exception):
    """The service cannot start or go on; the message is what its operator reads."""

    def __init__(self, message: str, exit_code: int = EXIT_FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class Stop:
    """Set by the first SIGTERM or SIGINT; the second ends the process at once."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def __call__(self) -> None:
        """Asks for the stop; asked again, exits without cleaning up."""
        if self._event.is_set():
            os._exit(EXIT_FAILED)
        self._event.set()

    @property
    def requested(self) -> bool:
        """Whether a stop was asked for."""
        return self._event.is_set()

    async def wait(self) -> None:
        """Returns once a stop was asked for."""
        await self._event.wait()


def run_service(
    name: str,
    settings_type: type[S],
    serve: Callable[[S, Stop], Awaitable[None]],
    argv: Sequence[str],
    environ: Mapping[str, str],
    check: Check[S] | None = None,
) -> int:
    """Runs ``serve`` to its end and returns the process's exit code.

    ``--help`` lists the variables with their defaults, ``--check`` runs ``check`` in
    ``serve``'s place. Exit codes: 0 stopped in good order, 1 failed, 2 wrong use or
    settings, others as StartFailure says.
    """
    checked = check if list(argv) == ["--check"] else None
    if argv and checked is None:
        return _answer(name, settings_type, argv, checks=check is not None)
    try:
        settings, sources = settings_type.from_env(environ), settings_type.sources(environ)
    except SettingError as error:
        return _complain(name, str(error), EXIT_USAGE)
    log.configure(name, settings.log_level)
    structlog.get_logger().info("settings", given=_given(settings, sources))
    try:
        if checked is None:
            asyncio.run(_until_stopped(lambda stop: serve(settings, stop)))
        else:
            asyncio.run(_until_stopped(lambda stop: checked(settings, sources, stop)))
    except Exception as error:
        return _report(name, error)
    return 0


def _answer(name: str, settings_type: type[Settings], argv: Sequence[str], *, checks: bool) -> int:
    if list(argv) == ["--version"]:
        print(name, __version__)
        return 0
    print(f"{name} {__version__}: settings come from the environment\n\n{settings_type.help()}")
    if checks:
        print("\n  --check starts up as far as the first request, prints what it found, and ends")
    return 0 if list(argv) == ["--help"] else EXIT_USAGE


def _given(settings: Settings, sources: Mapping[str, str]) -> dict[str, str]:
    """What was set, with its source; secrets show as stars."""
    return {
        name: f"{getattr(settings, name)} ({source})"
        for name, source in sources.items()
        if source != "default"
    }


async def _until_stopped(work: Callable[[Stop], Awaitable[None]]) -> None:
    stop = Stop()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    await work(stop)


def _report(name: str, error: Exception) -> int:
    """Exit code and one line for what an operator can mend; anything else is a fault of ours."""
    cause = _first(error)
    if isinstance(cause, StartFailure):
        return _complain(name, str(cause), cause.exit_code)
    if isinstance(cause, OSError | ServiceError):
        return _complain(name, str(cause), EXIT_FAILED)
    traceback.print_exception(cause)
    return _complain(name, f"unexpected {type(cause).__name__}", EXIT_FAILED)


def _first(error: BaseException) -> BaseException:
    """The first single error inside nested groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _complain(name: str, message: str, exit_code: int) -> int:
    print(f"{name}: {message}", file=sys.stderr, flush=True)
    structlog.get_logger().error("process_failed", reason=message, exit_code=exit_code)
    return exit_code
