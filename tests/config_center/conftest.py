"""A config center over real sockets and a real etcd, and a version folder."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from braid.config.v1 import config_pb2_grpc
from services.chassis.channel import open_channel
from services.chassis.registry import Registry
from services.chassis.security.admin_guard import AdminGuard
from services.chassis.server import RpcServer, ServiceEntry
from services.config_center.history import History
from services.config_center.main import LASTING, SERVICE
from services.config_center.servicer import ConfigServicer
from services.config_center.settings import ConfigCenterSettings
from services.config_center.store import Store

CARD = {
    "family": "masked_block_diffusion",
    "parameters_total": 5_400_000,
    "max_context": 1024,
    "defaults": {"max_steps": 16},
}


class Nodes:
    """Nodes that pass their smoke tests, or fail as they are told."""

    def __init__(self) -> None:
        self.fault = ""

    async def probe(self, model: str, version: str) -> str:
        """What was told."""
        return self.fault


@pytest.fixture
def prober() -> Nodes:
    """Nodes that are well."""
    return Nodes()


@pytest.fixture
async def config_center(
    registry: Registry, prober: Nodes
) -> AsyncIterator[config_pb2_grpc.ConfigServiceStub]:
    """A client of a running ConfigService."""
    add = config_pb2_grpc.add_ConfigServiceServicer_to_server
    guard = AdminGuard(ConfigCenterSettings(), CollectorRegistry())
    servicer = ConfigServicer(Store(registry), History(registry), guard, prober)
    entry = ServiceEntry(SERVICE, add, servicer, LASTING)
    server = RpcServer("127.0.0.1:0", [entry])
    port = await server.start(serving=True)
    async with open_channel(f"127.0.0.1:{port}") as channel:
        yield config_pb2_grpc.ConfigServiceStub(channel)
    await server.stop(0)


@pytest.fixture
def version_folder(tmp_path: Path) -> Path:
    """The smallest folder that can be registered."""
    folder = tmp_path / "demo" / "v1"
    folder.mkdir(parents=True)
    (folder / "braid.json").write_text(json.dumps(CARD))
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder
