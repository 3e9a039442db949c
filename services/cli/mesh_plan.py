"""Which processes a mesh has, where they listen and what their environment says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from braid.inference.v1 import inference_pb2 as inference
from services.cli.ports import HOST

PORTS_OF_MESH = 7
PORTS_OF_WORKER = 3


@dataclass(frozen=True, slots=True)
class GroupKind:
    """A group that a mesh can have: how its workers generate and the program they are."""

    paradigm: inference.Paradigm
    module: str


GROUPS: Mapping[str, GroupKind] = {
    "diffusion": GroupKind(inference.PARADIGM_DIFFUSION, "services.diffusion_worker.main"),
    "ar": GroupKind(inference.PARADIGM_AUTOREGRESSIVE, "services.ar_worker.main"),
}


@dataclass(frozen=True, slots=True)
class MeshOptions:
    """What is asked for; ``nodes`` counts the workers of each group."""

    state_dir: Path
    store: Path
    nodes: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(GROUPS, 1))
    port_base: int | None = None
    durable: bool = True
    """Whether etcd's data must outlive a crash of the machine."""


@dataclass(frozen=True, slots=True)
class WorkerPlan:
    """One worker; addresses are host:port."""

    node_id: str
    group: str
    address: str
    admin: str
    ops: str


@dataclass(frozen=True, slots=True)
class MeshPlan:
    """Every part and where it listens."""

    etcd_port: int
    etcd_peer_port: int
    config_center: str
    config_center_ops: str
    router: str
    router_admin: str
    router_ops: str
    workers: tuple[WorkerPlan, ...]

    @property
    def etcd(self) -> str:
        """Client address of etcd."""
        return _address(self.etcd_port)


def ports_needed(nodes: Mapping[str, int]) -> int:
    """Consecutive ports that a mesh with these workers takes."""
    return PORTS_OF_MESH + PORTS_OF_WORKER * sum(nodes.values())


def plan_mesh(nodes: Mapping[str, int], base: int) -> MeshPlan:
    """Gives out the ports from ``base`` on: etcd, config center, router, then the workers."""
    workers = []
    port = base + PORTS_OF_MESH
    for group, count in nodes.items():
        for number in range(1, count + 1):
            workers.append(plan_worker(group, number, port))
            port += PORTS_OF_WORKER
    return MeshPlan(
        etcd_port=base,
        etcd_peer_port=base + 1,
        config_center=_address(base + 2),
        config_center_ops=_address(base + 3),
        router=_address(base + 4),
        router_admin=_address(base + 5),
        router_ops=_address(base + 6),
        workers=tuple(workers),
    )


def plan_worker(group: str, number: int, port: int) -> WorkerPlan:
    """Worker ``number`` of ``group`` on three ports from ``port`` on."""
    return WorkerPlan(
        node_id=f"{group}-{number}",
        group=group,
        address=_address(port),
        admin=_address(port + 1),
        ops=_address(port + 2),
    )


def _address(port: int) -> str:
    return f"{HOST}:{port}"
