"""What deploys Braid says what Braid understands."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from services.chassis.ops import OpsServer, Readiness
from tests.deploy.manifests import (
    COMPOSE,
    DEPLOY,
    KUBERNETES,
    SETTINGS,
    Process,
    container,
    in_compose,
    in_kubernetes,
    of_kind,
)

PODS = in_kubernetes()
PROCESSES = [*PODS, *in_compose()]
each_pod = pytest.mark.parametrize("pod", PODS, ids=lambda pod: pod.name)


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file that can stand for any secret."""
    path = tmp_path / "secret"
    path.write_text("k" * 48)
    return path


@pytest.mark.parametrize("process", PROCESSES, ids=lambda it: f"{it.source}-{it.name}")
def test_services_take_their_environment(process: Process, secret: Path) -> None:
    """Each service starts with the variables given to it, and knows every one of them."""
    settings = process.settings(secret)
    given = {name for name in process.environment if name.startswith("BRAID_")}
    known = {settings.variable(field) for field in type(settings).model_fields}
    assert {name.removesuffix("_FILE") for name in given} <= known


def test_every_service_is_deployed_both_ways() -> None:
    """The manifests and the compose file name every service."""
    assert {pod.name for pod in PODS} == SETTINGS.keys()
    assert {process.name for process in in_compose()} == SETTINGS.keys() - {"batch-worker"}


@each_pod
def test_declared_ports_are_those_listened_on(pod: Process, secret: Path) -> None:
    """A port that a pod declares is the one that the service's settings say."""
    settings = pod.settings(secret)
    fields = {"grpc": "port", "admin": "admin_port", "ops": "ops_port"}
    declared = {one["name"]: one["containerPort"] for one in container(pod)["ports"]}
    listening = {name: getattr(settings, fields[name], None) for name in declared}
    assert declared == listening
    assert "ops" in declared


@each_pod
def test_probes_ask_for_paths_that_exist(pod: Process) -> None:
    """Probes use the ops port, and ask it for liveness and readiness."""
    ops = OpsServer("127.0.0.1", 0, lambda: Readiness(True, True, True), CollectorRegistry())
    served = {
        route.resource.canonical for route in ops._application().router.routes() if route.resource
    }
    only = container(pod)
    probes = {
        kind: only[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")
    }
    assert {probe["port"] for probe in probes.values()} == {"ops"}
    assert {probe["path"] for probe in probes.values()} <= served
    assert (probes["liveness"]["path"], probes["readiness"]["path"]) == ("/live", "/ready")


@each_pod
def test_running_calls_outlast_a_stop(pod: Process, secret: Path) -> None:
    """The platform waits longer than the service does for running calls."""
    grace_s = getattr(pod.settings(secret), "grace_s")  # noqa: B009 - not of the base class
    assert pod.manifest["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] > grace_s


@each_pod
def test_pods_have_no_rights(pod: Process) -> None:
    """No root, nothing to write to but mounts, no way to more rights."""
    spec, only = pod.manifest["spec"]["template"]["spec"], container(pod)
    assert spec["securityContext"]["runAsNonRoot"]
    assert not spec["automountServiceAccountToken"]
    assert only["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


@each_pod
def test_folders_written_to_are_mounted(pod: Process) -> None:
    """What a service writes lies on a volume, as its root is read-only."""
    mounts = {one["mountPath"] for one in container(pod)["volumeMounts"]}
    written = {pod.environment.get(f"BRAID_{name}_DIR") for name in ("STATE", "CACHE")} - {None}
    assert written <= mounts
    assert {
        str(Path(value).parent) for value in pod.environment.values() if value.startswith("/run/")
    } <= mounts


@each_pod
def test_certificates_name_the_advertised_host(pod: Process) -> None:
    """Certificates are for the host connected to; gRPC refuses wildcards of two labels."""
    [names] = [
        one["spec"]["dnsNames"]
        for one in of_kind("Certificate")
        if one["metadata"]["name"] == pod.name
    ]
    host = pod.environment.get("BRAID_ADVERTISE_HOST", pod.name)
    assert any(fnmatch(host, name) and host.count(".") == name.count(".") for name in names)
    assert all(name.count(".") >= 2 for name in names if name.startswith("*"))


@each_pod
def test_pods_are_spread_and_kept(pod: Process) -> None:
    """Replicas lie apart, and only some of them are taken away at once."""
    spec = pod.manifest["spec"]["template"]["spec"]
    keys = {one["topologyKey"] for one in spec["topologySpreadConstraints"]}
    assert keys == {"topology.kubernetes.io/zone", "kubernetes.io/hostname"}
    budgets = [one["spec"]["selector"] for one in of_kind("PodDisruptionBudget")]
    assert pod.manifest["spec"]["selector"] in budgets


def _policy(name: str) -> dict[str, Any]:
    [spec] = [one["spec"] for one in of_kind("NetworkPolicy") if one["metadata"]["name"] == name]
    assert isinstance(spec, dict)
    return spec


def test_nothing_is_reached_unless_allowed() -> None:
    """The first policy closes every pod in both directions."""
    assert _policy("default-deny") == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


def test_workers_are_reached_by_routers_alone() -> None:
    """No ingress rule but the routers' leads to a worker's gRPC ports."""
    [rule] = _policy("workers")["ingress"]
    assert rule["from"] == [{"podSelector": {"matchLabels": {"braid/role": "router"}}}]
    others = [
        one["spec"] for one in of_kind("NetworkPolicy") if one["metadata"]["name"] != "workers"
    ]
    reaching = [spec for spec in others if spec.get("ingress") and not _names_another_role(spec)]
    ports = {
        port["port"] for spec in reaching for rule in spec["ingress"] for port in rule["ports"]
    }
    assert ports == {"ops"}


def _names_another_role(spec: dict[str, Any]) -> bool:
    role = spec["podSelector"].get("matchLabels", {}).get("braid/role")
    return role is not None and role != "worker"


def test_prometheus_scrapes_every_ops_port(secret: Path) -> None:
    """The laptop's Prometheus asks each service where its metrics are."""
    config = yaml.safe_load((DEPLOY / "compose/prometheus/prometheus.yml").read_text())
    targets = {
        target
        for job in config["scrape_configs"]
        for static in job["static_configs"]
        for target in static["targets"]
    }
    ops = {f"{one.name}:{getattr(one.settings(secret), 'ops_port')}" for one in in_compose()}  # noqa: B009
    assert targets == ops


def test_images_are_built_from_targets_that_exist() -> None:
    """Every build of the compose file is a stage of the Dockerfile, none of them a build stage."""
    dockerfile = (DEPLOY / "images/Dockerfile").read_text()
    stages = re.findall(r"^FROM (\S+) AS (\S+)$", dockerfile, re.MULTILINE)
    run = {name for parent, name in stages if parent == "run"}
    built = {one["build"]["target"] for one in COMPOSE["services"].values() if "build" in one}
    assert built == run


@pytest.mark.parametrize(
    "kustomization", sorted(KUBERNETES.rglob("kustomization.yaml")), ids=lambda it: it.parent.name
)
def test_kustomizations_name_what_exists(kustomization: Path) -> None:
    """What an overlay is made of is there, and no file beside it is forgotten."""
    content = yaml.safe_load(kustomization.read_text())
    named = [*content.get("resources", []), *content.get("components", [])]
    assert all((kustomization.parent / name).exists() for name in named)
    beside = {path.name for path in kustomization.parent.glob("*.yaml")} - {kustomization.name}
    assert beside <= set(named)
