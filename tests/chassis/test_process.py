"""A service process: settings, signals, exit codes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, os, sys
from services.chassis.process import ProcessSettings, StartFailure, run_service

class UnitSettings(ProcessSettings):
    mode: str

async def serve(settings, stop):
    if settings.mode == "fail":
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(fail())
    print("up", flush=True)
    await stop.wait()
    print("draining", flush=True)
    if settings.mode == "hang":
        await asyncio.Event().wait()

async def fail():
    raise StartFailure("the disk is gone", exit_code=3)

async def check(settings, sources, stop):
    print(settings.mode, sources["mode"], sources["log_level"])

sys.exit(run_service("unit", UnitSettings, serve, sys.argv[1:], os.environ, check))
"""


def _start(mode: str | None, *arguments: str) -> subprocess.Popen[str]:
    environ = {**os.environ, "BRAID_MODE": mode or ""}
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _line(process: subprocess.Popen[str]) -> str:
    """The next that is no log line."""
    assert process.stdout is not None
    return next(line.strip() for line in process.stdout if not line.startswith("{"))


@pytest.mark.parametrize(
    ("mode", "arguments", "code", "told"),
    [
        (None, (), 2, "BRAID_MODE"),
        ("fail", (), 3, "the disk is gone"),
        ("run", ("--help",), 0, ""),
        ("run", ("--version",), 0, ""),
        ("run", ("--wrong",), 2, ""),
    ],
)
def test_exit_code_and_message(
    mode: str | None, arguments: tuple[str, ...], code: int, told: str
) -> None:
    """Bad settings, a failed start and wrong use each have their code and one clear line."""
    with _start(mode, *arguments) as process:
        _, errors = process.communicate(timeout=30)
    assert process.returncode == code
    assert told in errors
    assert "Traceback" not in errors


def test_check_runs_in_place_of_the_service() -> None:
    """--check gets the settings and what set each one, and its end is the process's."""
    with _start("run", "--check") as process:
        assert _line(process) == "run BRAID_MODE default"
        assert process.wait(timeout=30) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_first_signal_drains(number: signal.Signals) -> None:
    """SIGTERM and SIGINT let the service end by itself with code 0."""
    with _start("run") as process:
        assert _line(process) == "up"
        process.send_signal(number)
        assert process.wait(timeout=30) == 0


def test_second_signal_exits_at_once() -> None:
    """A drain that hangs is ended by the next signal."""
    with _start("hang") as process:
        assert _line(process) == "up"
        process.send_signal(signal.SIGTERM)
        assert _line(process) == "draining"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 1
