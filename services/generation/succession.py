"""Follows the version that a group's record names."""

from __future__ import annotations

import asyncio

from services.chassis.errors import LoadFailed
from services.generation.residence import Residence
from services.generation.types import VersionName


class Succession:
    """Brings the version that was named last into service; the newest wish counts."""

    def __init__(self, residence: Residence) -> None:
        self._residence = residence
        self._wanted: VersionName | None = None
        self._named = asyncio.Event()

    def want(self, name: VersionName) -> None:
        """Names the version; the same one again is tried again if it failed."""
        self._wanted = name
        self._named.set()

    async def run(self) -> None:
        """Goes on until cancelled; a refused version waits for another word."""
        while True:
            await self._named.wait()
            self._named.clear()
            if self._wanted is not None:
                try:
                    await self._residence.serve(self._wanted)
                except LoadFailed:
                    continue
