"""Becomes another program that ends when its parent does, however that ends.

Run as a file: ``python tethered.py PARENT_PID PROGRAM [ARGUMENT...]``. A parent
killed with -9 stops nothing itself; the kernel then sends the child SIGTERM, so
that it drains as usual. Linux only; elsewhere it just runs the program.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(parent_pid: int, program: list[str]) -> None:
    """Ties this process to ``parent_pid`` and replaces it by ``program``."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent_pid:
        sys.exit(1)
    os.execv(program[0], program)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
