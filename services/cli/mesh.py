"""A mesh of real processes: started in order, stopped in the reverse order."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack

from braid.config.v1 import config_pb2 as config
from braid.config.v1.config_pb2_grpc import ConfigServiceStub
from services.chassis.channel import open_channel
from services.cli import part_environment as environment
from services.cli.etcd_process import EtcdProcess
from services.cli.mesh_failure import cause_of
from services.cli.mesh_plan import (
    GROUPS,
    PORTS_OF_WORKER,
    MeshOptions,
    WorkerPlan,
    plan_mesh,
    plan_worker,
    ports_needed,
)
from services.cli.mesh_record import MeshRecord, NodeRecord, Pids
from services.cli.model_store import StoredVersion, stored_versions
from services.cli.parts import Parts, Report
from services.cli.ports import choose_base, free_base
from services.cli.readiness import etcd_healthy, nodes_routable, serving, worker_ready
from services.cli.recording import assign_groups, record_versions
from services.cli.state_dir import StateDir

ETCD, CONFIG_CENTER, ROUTER = "etcd", "config-center", "router"

START_S = 180.0
"""Longest time until everything is ready, on a machine that is very busy."""


class Mesh:
    """etcd, config center, router and workers. Started once, stopped once.

    ``report`` hears of each part's states, its unasked end among them.
    """

    def __init__(self, options: MeshOptions, report: Report) -> None:
        self._options = options
        self._state = StateDir(options.state_dir)
        self._report = report
        self._parts = Parts(self._state, report)
        self._held = ExitStack()
        self.plan = plan_mesh({}, 0)
        self._groups: dict[str, config.Group] = {}
        self._nodes: dict[str, NodeRecord] = {}
        self._ready = False

    async def start(self) -> MeshRecord:
        """Returns once every part is ready and mesh.json is written.

        Raises MeshFailure, with nothing left running.
        """
        try:
            async with asyncio.timeout(START_S):
                await self._start()
            return self._write_record()
        except BaseException as error:
            await self.stop()
            raise cause_of(error) from None

    async def add_worker(self, group: str, version: str = "") -> NodeRecord:
        """Starts one more worker of ``group``; returns once it is READY.

        It serves the group's version, unless another one of the model is named.
        """
        number = 1 + sum(node.group == group for node in self._nodes.values())
        worker = plan_worker(group, number, free_base(PORTS_OF_WORKER))
        serves = self._groups[group]
        await self._start_worker(worker, serves.model, version or serves.version)
        self._write_record()
        return self._nodes[worker.node_id]

    async def stop(self) -> None:
        """Drains and ends every part: workers first, then what they lean on."""
        if self._ready:
            MeshRecord.remove(self._state.path)
        await self._parts.stop(self._nodes)
        for part in (ROUTER, CONFIG_CENTER, ETCD):
            await self._parts.stop([part])
        await self._parts.close()
        self._held.close()

    def kill(self) -> None:
        """Ends every part at once."""
        self._parts.kill()

    async def _start(self) -> None:
        stored = stored_versions(self._options.store)
        self._held.enter_context(self._state.held())
        base = choose_base(ports_needed(self._options.nodes), self._options.port_base)
        self.plan = plan_mesh(self._options.nodes, base)
        await self._start_etcd()
        async with asyncio.TaskGroup() as starting:
            starting.create_task(self._start_router())
            await self._start_config_center()
            await self._record(stored)
            for worker in self.plan.workers:
                serves = self._groups[worker.group]
                starting.create_task(self._start_worker(worker, serves.model, serves.version))
        await nodes_routable(self.plan.router_admin, self._nodes)

    async def _start_etcd(self) -> None:
        etcd = EtcdProcess(
            self._state.etcd_data,
            self.plan.etcd_port,
            self.plan.etcd_peer_port,
            fsync=self._options.durable,
        )
        await self._parts.start(ETCD, etcd.command(), {})
        await self._parts.ready(ETCD, etcd_healthy(etcd))

    async def _start_config_center(self) -> None:
        variables = environment.config_center(self.plan)
        await self._parts.start(CONFIG_CENTER, _python("services.config_center.main"), variables)
        await self._parts.ready(CONFIG_CENTER, serving(self.plan.config_center))

    async def _start_router(self) -> None:
        variables = environment.router(self.plan, self._state.data(ROUTER))
        await self._parts.start(ROUTER, _python("services.router.main"), variables)
        await self._parts.ready(ROUTER, serving(self.plan.router_admin))

    async def _record(self, stored: Sequence[StoredVersion]) -> None:
        """Has the config center know what is served, before a worker asks."""
        wanted = {
            name: GROUPS[name].paradigm for name, count in self._options.nodes.items() if count
        }
        async with open_channel(self.plan.config_center) as channel:
            center = ConfigServiceStub(channel)
            records = await record_versions(center, stored)
            self._groups = await assign_groups(center, records, wanted)

    async def _start_worker(self, worker: WorkerPlan, model: str, version: str) -> None:
        cache = self._state.data("models")
        variables = environment.worker(self.plan, worker, model, version, cache, self._threads)
        name = worker.node_id
        await self._parts.start(name, _python(GROUPS[worker.group].module), variables)
        self._nodes[name] = NodeRecord.of(worker, model, version, self._parts.pid(name))
        await self._parts.ready(name, worker_ready(name, worker.admin, self._report))

    @property
    def _threads(self) -> int:
        """Cores for each worker, so that they do not fight over them."""
        return max(1, (os.cpu_count() or 1) // max(1, sum(self._options.nodes.values())))

    def _write_record(self) -> MeshRecord:
        plan = self.plan
        record = MeshRecord(
            etcd=plan.etcd,
            router=plan.router,
            router_admin=plan.router_admin,
            router_ops=plan.router_ops,
            config_center=plan.config_center,
            nodes=tuple(self._nodes.values()),
            pids=Pids(
                etcd=self._parts.pid(ETCD),
                router=self._parts.pid(ROUTER),
                config_center=self._parts.pid(CONFIG_CENTER),
            ),
        )
        record.write(self._state.path)
        self._ready = True
        return record


def _python(module: str) -> list[str]:
    """A module of this package as a program; the current folder is not searched for it."""
    return [sys.executable, "-P", "-m", module]
