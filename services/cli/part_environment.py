"""The BRAID_* variables of each part of a mesh."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from services.cli.mesh_plan import MeshPlan, WorkerPlan
from services.cli.ports import HOST, port_of

_KEPT_BACK = re.compile(
    r"((https?|all|grpc)_proxy\Z)|ETCD_|BRAID_(TLS_|API_KEY|OPERATOR_KEY|ACCESS\Z)", re.IGNORECASE
)


def inherited(environ: Mapping[str, str]) -> dict[str, str]:
    """What every part takes over of this process's environment.

    The user's settings (BRAID_LOG_LEVEL and the like) reach the parts. A proxy
    does not, all traffic of a mesh being on loopback, nor do settings of etcd,
    which would overrule the mesh's own, nor certificates and keys of
    another mesh: this one is open, on loopback. gRPC's notes about connections that
    come and go stay out of the logs, unless asked for.
    """
    taken_over = {name: value for name, value in environ.items() if not _KEPT_BACK.match(name)}
    return {"GRPC_VERBOSITY": "ERROR"} | taken_over


def config_center(plan: MeshPlan) -> dict[str, str]:
    """Variables of the config center."""
    return {
        "BRAID_ETCD": plan.etcd,
        "BRAID_HOST": HOST,
        "BRAID_PORT": port_of(plan.config_center),
        "BRAID_OPS_PORT": port_of(plan.config_center_ops),
    }


def router(plan: MeshPlan, data: Path) -> dict[str, str]:
    """Variables of the router."""
    return {
        "BRAID_ETCD": plan.etcd,
        "BRAID_HOST": HOST,
        "BRAID_NODE_ID": "router-1",
        "BRAID_PORT": port_of(plan.router),
        "BRAID_ADMIN_PORT": port_of(plan.router_admin),
        "BRAID_OPS_PORT": port_of(plan.router_ops),
        "BRAID_STATE_DIR": str(data),
    }


def worker(
    plan: MeshPlan, one: WorkerPlan, model: str, version: str, cache: Path, threads: int
) -> dict[str, str]:
    """Variables of one worker, which computes on ``threads`` threads."""
    return {
        "BRAID_ETCD": plan.etcd,
        "BRAID_HOST": HOST,
        "BRAID_NODE_ID": one.node_id,
        "BRAID_GROUP": one.group,
        "BRAID_MODEL": model,
        "BRAID_VERSION": version,
        "BRAID_PORT": port_of(one.address),
        "BRAID_ADMIN_PORT": port_of(one.admin),
        "BRAID_OPS_PORT": port_of(one.ops),
        "BRAID_CACHE_DIR": str(cache),
        "BRAID_THREADS": str(threads),
        "OMP_NUM_THREADS": str(threads),
    }
