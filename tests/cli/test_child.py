"""Processes of a mesh end when they are told to, and with their parent."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import psutil

from services.cli.child import Child
from tests.eventually import eventually

SLEEP = (sys.executable, "-c", "print('up', flush=True); import time; time.sleep(60)")
STUBBORN = (
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "print('up', flush=True); time.sleep(60)",
)
PARENT = """
import asyncio, sys
from pathlib import Path
from services.cli.child import Child
async def main():
    child = Child("c", (sys.executable, "-c", "import time; time.sleep(60)"), {}, Path(sys.argv[1]))
    await child.start()
    print(child.pid, flush=True)
    await child.ended()
asyncio.run(main())
"""


async def started(program: tuple[str, ...], log: Path) -> Child:
    child = Child("child", program, os.environ, log)
    await child.start()
    await eventually(lambda: "up" in log.read_text())
    return child


async def test_stop_asks_first(tmp_path: Path) -> None:
    """A child that obeys SIGTERM is not killed."""
    child = await started(SLEEP, tmp_path / "log")
    await child.stop(grace_s=10)
    assert await child.ended() == -signal.SIGTERM


async def test_stop_kills_what_does_not_obey(tmp_path: Path) -> None:
    """After the grace a child is killed."""
    child = await started(STUBBORN, tmp_path / "log")
    await child.stop(grace_s=0.2)
    assert await child.ended() == -signal.SIGKILL


async def test_stop_of_an_ended_child(tmp_path: Path) -> None:
    """Stopping what has ended by itself is no error."""
    child = await started(SLEEP, tmp_path / "log")
    child.kill()
    await child.ended()
    await child.stop(grace_s=1)


async def test_last_words_tell_the_cause(tmp_path: Path) -> None:
    """The end of the log is there for the report about a failed start."""
    program = (sys.executable, "-c", "print('up'); print('no disk'); raise SystemExit(3)")
    child = await started(program, tmp_path / "log")
    assert await child.ended() == 3
    assert child.last_words() == "up | no disk"


async def test_complaint_comes_before_the_rest_of_the_log(tmp_path: Path) -> None:
    """What a service says to its operator is the cause, whatever it logs beside it."""
    program = (sys.executable, "-c", "print('up'); print('braid-x: no disk'); print('{}')")
    child = await started(program, tmp_path / "log")
    await child.ended()
    assert child.last_words() == "braid-x: no disk"


async def test_child_ends_with_a_killed_parent(tmp_path: Path) -> None:
    """kill -9 of the parent takes the child along."""
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PARENT, str(tmp_path / "log"), stdout=asyncio.subprocess.PIPE
    )
    assert parent.stdout is not None
    child = psutil.Process(int(await parent.stdout.readline()))
    parent.kill()
    await parent.wait()
    await eventually(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)
