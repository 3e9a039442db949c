"""Somebody else's loop, run one turn at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Turns(threading.Thread):
    """Runs ``work`` in a thread of its own, which moves only while it is its turn.

    A turn lasts until ``work`` calls ``pause``, or ends. Whoever gives turns waits
    for their end, so that of the two threads only one ever runs.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        super().__init__(name="turns", daemon=True)
        self._work = work
        self._given = threading.Semaphore(0)
        self._taken = threading.Semaphore(0)
        self._closing = False
        self._error: Exception | None = None

    def take(self) -> None:
        """One turn; raises what ``work`` raises."""
        if self.ident is None:
            self.start()
        elif not self.is_alive():
            raise RuntimeError("no turn is left: the work has ended")
        self._given.release()
        self._taken.acquire()
        if self._error is not None:
            raise self._error

    def pause(self) -> None:
        """Ends the turn; returns with the next one. For ``work`` alone."""
        self._taken.release()
        self._given.acquire()
        if self._closing:
            raise _Closed

    def close(self) -> None:
        """Ends ``work`` where it pauses, and its thread with it. Idempotent."""
        self._closing = True
        if self.ident is not None:
            self._given.release()
            self.join()

    def run(self) -> None:
        """The thread."""
        self._given.acquire()
        try:
            self._work()
        except _Closed:
            pass
        except Exception as error:
            self._error = error
        finally:
            self._taken.release()


class _Closed(BaseException):
    """Unwinds work that is closed; no Exception, so that nothing on the way takes it for one."""
