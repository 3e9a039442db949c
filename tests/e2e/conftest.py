"""One mesh of real processes and the demo models, shared by the end-to-end tests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import grpc.aio
import pytest
import pytest_asyncio

from services.chassis.channel import open_channel
from services.cli.mesh import Mesh
from services.cli.mesh_plan import MeshOptions
from services.cli.mesh_record import MeshRecord
from services.cli.model_store import DEFAULT_STORE
from tests.e2e.running_mesh import RunningMesh


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def mesh(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningMesh]:
    """Two diffusion workers and one autoregressive worker, from the demo store."""
    state_dir = tmp_path_factory.mktemp("mesh")
    options = MeshOptions(
        state_dir=state_dir, store=DEFAULT_STORE, nodes={"diffusion": 2, "ar": 1}, durable=False
    )
    states: list[tuple[str, str]] = []
    mesh = Mesh(options, lambda part, state: states.append((part, state)))
    await mesh.start()
    yield RunningMesh(mesh, state_dir, states)
    await mesh.stop()
    assert MeshRecord.read(state_dir) is None


@pytest_asyncio.fixture(loop_scope="session")
async def router(mesh: RunningMesh) -> AsyncIterator[grpc.aio.Channel]:
    """A channel to the router."""
    async with open_channel(mesh.record.router) as channel:
        yield channel


@pytest_asyncio.fixture(loop_scope="session")
async def admin(mesh: RunningMesh) -> AsyncIterator[grpc.aio.Channel]:
    """A channel to the router's admin port."""
    async with open_channel(mesh.record.router_admin) as channel:
        yield channel


@pytest_asyncio.fixture(loop_scope="session")
async def center(mesh: RunningMesh) -> AsyncIterator[grpc.aio.Channel]:
    """A channel to the config center."""
    async with open_channel(mesh.record.config_center) as channel:
        yield channel
