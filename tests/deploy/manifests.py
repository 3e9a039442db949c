"""What the deployment files say, as the tests ask for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from services.ar_worker.main import ArWorkerSettings
from services.chassis.settings import Settings
from services.config_center.settings import ConfigCenterSettings
from services.diffusion_worker.main import DiffusionWorkerSettings
from services.router.settings import RouterSettings

DEPLOY = Path(__file__).parents[2] / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text())

SETTINGS: dict[str, type[Settings]] = {
    "router": RouterSettings,
    "config-center": ConfigCenterSettings,
    "diffusion-worker": DiffusionWorkerSettings,
    "ar-worker": ArWorkerSettings,
    "batch-worker": DiffusionWorkerSettings,
}


@dataclass(frozen=True)
class Process:
    """A service as one file starts it."""

    source: str
    name: str
    environment: dict[str, str]
    manifest: dict[str, Any]

    def settings(self, secret: Path) -> Settings:
        """What the service makes of it; ``secret`` stands for every mounted file."""
        environ = {
            name: str(secret) if value.startswith("/run/secrets/") else value
            for name, value in self.environment.items()
        }
        return SETTINGS[self.name].from_env(environ)


def documents() -> Iterator[dict[str, Any]]:
    """Every object of the Kubernetes files but the kustomizations."""
    for path in sorted(KUBERNETES.rglob("*.yaml")):
        if path.name != "kustomization.yaml":
            yield from (one for one in yaml.safe_load_all(path.read_text()) if one)


def of_kind(*kinds: str) -> list[dict[str, Any]]:
    """The objects of these kinds."""
    return [one for one in documents() if one["kind"] in kinds]


def in_kubernetes() -> list[Process]:
    """Every service of the manifests."""
    return [_pod(one) for one in of_kind("Deployment", "StatefulSet")]


def in_compose() -> list[Process]:
    """Every service of the compose file that is one of Braid's."""
    services = COMPOSE["services"]
    return [
        Process("compose", name, services[name]["environment"], services[name])
        for name in SETTINGS
        if name in services
    ]


def container(process: Process) -> dict[str, Any]:
    """The one container of a pod."""
    [only] = process.manifest["spec"]["template"]["spec"]["containers"]
    assert isinstance(only, dict)
    return only


def _pod(workload: dict[str, Any]) -> Process:
    name = workload["metadata"]["name"]
    [only] = workload["spec"]["template"]["spec"]["containers"]
    given = {one["name"]: one.get("value", f"{name}-0") for one in only["env"]}
    environment = {key: value.replace("$(POD_NAME)", f"{name}-0") for key, value in given.items()}
    return Process("kubernetes", name, environment, workload)
