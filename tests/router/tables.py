"""Routing tables for tests, built node by node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from braid.inference.v1 import inference_pb2
from braid.routing.v1 import routing_pb2
from braid.worker.v1 import worker_pb2
from services.router.features import Features
from services.router.load import NodeLoad
from services.router.node import TableNode, abilities_of
from services.router.policy_compiler import compile_policy
from services.router.table import PolicyInForce, RoutingTable

ALL_CAPABILITIES = ("infill", "edit", "template", "json_schema", "regex", "choice", "seed")


def node(
    node_id: str,
    group: str = "diffusion",
    *,
    model: str = "m",
    version: str = "v1",
    weight: int = 100,
    reason: str = "",
    capabilities: Iterable[str] = ALL_CAPABILITIES,
    pending: float = 0.0,
    slots: int = 0,
    running: int = 0,
) -> TableNode:
    """A node as a table holds it; ``pending`` forward passes wait there.

    With ``slots`` it has a limit; ``running`` calls of other routers are on it.
    """
    record = worker_pb2.Node(
        node_id=node_id,
        group=group,
        address="127.0.0.1:1",
        paradigm=(
            inference_pb2.PARADIGM_AUTOREGRESSIVE
            if group == "ar"
            else inference_pb2.PARADIGM_DIFFUSION
        ),
        model=model,
        version=version,
        capabilities=capabilities,
    )
    load = NodeLoad()
    status = worker_pb2.NodeStatus(
        pending_forwards=pending, step_seconds=0.01, slots=slots, running=running
    )
    load.report(status, now=0.0)
    key = f"/braid/nodes/{group}/{node_id}"
    return TableNode(key, record, weight, reason, load, abilities_of(record))


def table(
    *nodes: TableNode,
    policy: routing_pb2.Policy | None = None,
    traffic: Mapping[str, Mapping[str, int]] | None = None,
) -> RoutingTable:
    """A table of ``nodes``; the built-in policy where none is given."""
    in_force = PolicyInForce(policy, compile_policy(policy)) if policy else PolicyInForce.default()
    return replace(RoutingTable(in_force).changed(nodes), traffic=traffic or {})


def code(**more: object) -> Features:
    """Features of a code completion, which the built-in policy sends to ``diffusion``."""
    return Features(inference_pb2.TASK_CODE_COMPLETION, **more)  # type: ignore[arg-type]
