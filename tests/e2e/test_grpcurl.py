"""Everything can be looked at with grpcurl, without any proto file."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.running_mesh import RunningMesh

INFERENCE = "braid.inference.v1.InferenceService"
WORKER = "braid.worker.v1.WorkerService"
ROUTER = "braid.routing.v1.RouterService"
CONFIG = "braid.config.v1.ConfigService"
HEALTH = "grpc.health.v1.Health"
REFLECTION = "grpc.reflection.v1alpha.ServerReflection"
CHANNELZ = "grpc.channelz.v1.Channelz"

CHAT = {"task": "TASK_CHAT", "prompt": "Hello!"}


def grpcurl(*arguments: str) -> str:
    """Standard output of one grpcurl command, which must succeed."""
    beside_python = Path(sys.executable).with_name("grpcurl")
    program = beside_python if beside_python.exists() else shutil.which("grpcurl")
    done = subprocess.run(
        [str(program), "-plaintext", *arguments], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def call(address: str, method: str, message: dict[str, Any] | None = None) -> dict[str, Any]:
    """The answer of one call, JSON in and out."""
    output = grpcurl("-d", json.dumps(message or {}), address, method)
    answer: dict[str, Any] = json.loads(output, object_pairs_hook=snake_case)
    return answer


def snake_case(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Keys as in the proto files; releases of grpcurl differ in how they write them."""
    return {re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", k): v for k, v in pairs}


@pytest.fixture
def ports(mesh: RunningMesh) -> dict[str, tuple[str, set[str]]]:
    """Address of every gRPC port and the services that it must list."""
    record = mesh.record
    ports = {
        "config-center": (record.config_center, {CONFIG, CHANNELZ}),
        "router": (record.router, {INFERENCE}),
        "router-admin": (record.router_admin, {ROUTER, CHANNELZ}),
    }
    for node in record.nodes[:3]:
        ports[node.node_id] = (node.address, {INFERENCE})
        ports[f"{node.node_id}-admin"] = (node.admin, {WORKER, CHANNELZ})
    return ports


def test_every_port_lists_its_services(ports: dict[str, tuple[str, set[str]]]) -> None:
    """Reflection names the port's services, health and reflection beside them."""
    for name, (address, services) in ports.items():
        listed = set(grpcurl(address, "list").split())
        assert services | {HEALTH, REFLECTION} <= listed, name


def test_every_service_is_healthy(ports: dict[str, tuple[str, set[str]]]) -> None:
    """Health answers for the server as a whole and for each service."""
    for name, (address, services) in ports.items():
        for service in ["", *(services - {CHANNELZ})]:
            answer = call(address, f"{HEALTH}/Check", {"service": service})
            assert answer == {"status": "SERVING"}, (name, service)


def test_router_generates(mesh: RunningMesh) -> None:
    """A request typed as JSON gets an answer through the router."""
    answer = call(mesh.record.router, f"{INFERENCE}/Generate", CHAT)
    assert answer["served_by"]["paradigm"] == "PARADIGM_AUTOREGRESSIVE"


def test_router_streams(mesh: RunningMesh) -> None:
    """A streamed answer ends with its figures."""
    output = grpcurl("-d", json.dumps(CHAT), mesh.record.router, f"{INFERENCE}/GenerateStream")
    assert '"finished"' in output


def test_router_explains(mesh: RunningMesh) -> None:
    """The dry run of a request names rule and node."""
    answer = call(mesh.record.router_admin, f"{ROUTER}/Explain", {"request": CHAT})
    assert answer["rule"] == "default"
    assert answer["node_id"].startswith("ar-")


def test_routing_table_lists_the_nodes(mesh: RunningMesh) -> None:
    """The table holds every node of the mesh, routable."""
    table = call(mesh.record.router_admin, f"{ROUTER}/GetRoutingTable")
    routable = {entry["node"]["node_id"] for entry in table["nodes"] if entry.get("routable")}
    assert {"diffusion-1", "diffusion-2", "ar-1"} <= routable


def test_worker_describes_itself(mesh: RunningMesh) -> None:
    """Each worker answers directly, on its admin port and on its inference port."""
    for node in mesh.record.nodes[:3]:
        described = call(node.admin, f"{WORKER}/Describe")
        assert described["node"]["node_id"] == node.node_id
        assert described["status"]["state"] == "NODE_STATE_READY"
        answer = call(node.address, f"{INFERENCE}/Generate", CHAT)
        assert answer["served_by"]["node_id"] == node.node_id


def test_config_center_lists_models(mesh: RunningMesh) -> None:
    """The recorded versions and the groups can be read."""
    answer = call(mesh.record.config_center, f"{CONFIG}/ListModels")
    assert {"demo-ar", "demo-diffusion"} <= {one["model"] for one in answer["model_versions"]}
    groups = call(mesh.record.config_center, f"{CONFIG}/ListGroups")
    assert {"ar", "diffusion"} <= {group["group"] for group in groups["groups"]}
    assert call(mesh.record.config_center, f"{CONFIG}/GetPolicy")["policy"]["rules"]


def test_admin_ports_have_channelz(ports: dict[str, tuple[str, set[str]]]) -> None:
    """Connections can be looked at where the port is for management."""
    for name, (address, services) in ports.items():
        if CHANNELZ in services:
            assert call(address, f"{CHANNELZ}/GetServers")["server"], name
