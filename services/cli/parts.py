"""The processes of a mesh by name: started, waited for, watched, stopped."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any

from services.cli.child import Child
from services.cli.mesh_failure import PartEnded
from services.cli.part_environment import inherited
from services.cli.state_dir import StateDir

Report = Callable[[str, str], None]
"""Told a part's name and its new state."""

STOP_S = 20.0
"""Time a part has to drain before it is killed."""


class Parts:
    """Owns the children of one mesh and the tasks that watch them."""

    def __init__(self, state: StateDir, report: Report) -> None:
        self._state = state
        self._report = report
        self._children: dict[str, Child] = {}
        self._watches: list[asyncio.Task[None]] = []
        self._stopping: set[str] = set()

    def pid(self, name: str) -> int:
        """Process id of a part that was started."""
        return self._children[name].pid

    async def start(self, name: str, program: Sequence[str], variables: Mapping[str, str]) -> Child:
        """Starts ``program`` and reports its end if it comes unasked."""
        env = inherited(os.environ) | dict(variables)
        child = Child(name, program, env, self._state.log(name))
        self._report(name, "starting")
        await child.start()
        self._children[name] = child
        self._watches.append(asyncio.create_task(self._watch(child)))
        return child

    async def ready(self, name: str, condition: Coroutine[Any, Any, None]) -> None:
        """Waits for ``condition``. Raises PartEnded where the part ends first."""
        waiting = asyncio.create_task(condition)
        ending = asyncio.create_task(self._children[name].ended())
        try:
            await asyncio.wait((waiting, ending), return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                child = self._children[name]
                raise PartEnded(f"{name} ended: {child.last_words()} (log: {child.log})")
            waiting.result()
            self._report(name, "ready")
        finally:
            waiting.cancel()
            ending.cancel()
            await asyncio.gather(waiting, ending, return_exceptions=True)

    async def stop(self, names: Iterable[str]) -> None:
        """Stops these parts at the same time, as far as they run."""
        children = [self._children[name] for name in names if name in self._children]
        self._stopping.update(child.name for child in children)
        await asyncio.gather(*(self._stop(child) for child in children))

    async def close(self) -> None:
        """Stops whatever still runs, and the watching."""
        await self.stop(list(self._children))
        await asyncio.gather(*self._watches)

    def kill(self) -> None:
        """Ends everything at once."""
        self._stopping.update(self._children)
        for child in self._children.values():
            child.kill()

    async def _stop(self, child: Child) -> None:
        if child.running:
            self._report(child.name, "stopping")
            await child.stop(STOP_S)
            self._report(child.name, "stopped")

    async def _watch(self, child: Child) -> None:
        code = await child.ended()
        if child.name not in self._stopping:
            self._report(child.name, f"ended unasked, {_cause(code)}; see {child.log}")


def _cause(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
