"""The config center's process: ``braid-config-center``."""

from __future__ import annotations

import asyncio
import os
import sys

import structlog

from braid.config.v1 import config_pb2_grpc
from services.chassis import keys
from services.chassis.errors import ServiceError
from services.chassis.metrics import new_registry
from services.chassis.ops import OpsServer, Readiness
from services.chassis.process import Stop, run_service
from services.chassis.registry import Registry
from services.chassis.security.admin_guard import AdminGuard
from services.chassis.security.tls import Tls, dial_of, server_credentials_of
from services.chassis.server import RpcServer, ServiceEntry
from services.config_center.hand_edits import HandEdits
from services.config_center.history import History
from services.config_center.rollout.controller import RolloutController
from services.config_center.rollout.leadership import Leadership
from services.config_center.rollout.rollouts import Rollouts
from services.config_center.rollout.router_figures import RouterFigures
from services.config_center.servicer import ConfigServicer
from services.config_center.settings import ConfigCenterSettings
from services.config_center.store import Store

SERVICE = "braid.config.v1.ConfigService"
LASTING = frozenset({"WatchChanges"})
PROBE_EVERY_S = 1.0

log = structlog.get_logger()


class RegistryProbe:
    """Whether etcd answers, asked now and again."""

    def __init__(self, registry: Registry, server: RpcServer) -> None:
        self._registry = registry
        self._server = server
        self._fault = "etcd has not answered yet"

    async def run(self) -> None:
        """Asks until cancelled; health and readiness follow the answers."""
        while True:
            fault = await self._ask()
            if fault != self._fault:
                log.info("registry_probe", reachable=not fault, reason=fault)
                self._fault = fault
                await self._server.set_serving(not fault)
            await asyncio.sleep(PROBE_EVERY_S)

    async def _ask(self) -> str:
        try:
            await self._registry.get(keys.POLICY)
        except ServiceError as error:
            return error.message
        return ""

    def readiness(self) -> Readiness:
        """There is no model and no memory limit here; ``accepting`` is whether etcd answers."""
        return Readiness(
            model_loaded=True, memory_ok=True, accepting=not self._fault, reason=self._fault
        )


async def serve(settings: ConfigCenterSettings, stop: Stop) -> None:
    """Runs one config center until ``stop``."""
    async with Registry(settings) as registry:
        metrics = new_registry("config_center")
        guard = AdminGuard(settings, metrics)
        figures = _figures(settings, registry)
        servicer = ConfigServicer(Store(registry), History(registry), guard, figures)
        hand_edits = HandEdits(registry, metrics)
        controller = RolloutController(Rollouts(Store(registry)), figures, Leadership(registry))
        add = config_pb2_grpc.add_ConfigServiceServicer_to_server
        server = RpcServer(
            f"{settings.host}:{settings.port}",
            [ServiceEntry(SERVICE, add, servicer, LASTING)],
            channelz=True,
            interceptors=guard.interceptors,
            credentials=server_credentials_of(Tls.of(settings)),
        )
        probe = RegistryProbe(registry, server)
        ops = OpsServer(settings.host, settings.ops_port, probe.readiness, metrics)
        port, ops_port = await server.start(), await ops.start()
        log.info("config_center_started", port=port, ops_port=ops_port)
        async with asyncio.TaskGroup() as tasks:
            works = (probe.run(), hand_edits.run(), guard.follow(registry), controller.run())
            lasting = [tasks.create_task(it) for it in works]
            await stop.wait()
            for task in lasting:
                task.cancel()
        await server.stop(settings.grace_s)
        await ops.stop()
        log.info("config_center_stopped")


def _figures(settings: ConfigCenterSettings, registry: Registry) -> RouterFigures:
    key = settings.operator_key
    return RouterFigures(registry, dial_of(Tls.of(settings)), key.get_secret_value() if key else "")


def main() -> None:
    """Console entry point."""
    sys.exit(
        run_service(
            "braid-config-center", ConfigCenterSettings, serve, sys.argv[1:], dict(os.environ)
        )
    )


if __name__ == "__main__":
    main()
