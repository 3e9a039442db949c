"""Workers over real sockets, one of each paradigm."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.generation.answers import ANSWERS
from tests.generation.serving import Serving, serving


@pytest.fixture(params=["diffusion_checkpoint", "ar_checkpoint"])
def folder(request: pytest.FixtureRequest) -> Path:
    """A tiny checkpoint of each paradigm."""
    return Path(request.getfixturevalue(request.param))


@pytest.fixture
async def random(folder: Path) -> AsyncIterator[Serving]:
    """A worker whose model is random."""
    async with serving(folder) as worker:
        yield worker


@pytest.fixture
async def scripted(folder: Path) -> AsyncIterator[Serving]:
    """A worker whose model is sure of ANSWERS."""
    async with serving(folder, ANSWERS) as worker:
        yield worker
