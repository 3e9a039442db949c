"""A gRPC server with what every port of Braid offers: health, reflection, drain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import grpc
import grpc.aio
from grpc_channelz.v1 import channelz
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from services.chassis.channel import SERVER_OPTIONS, SHARED_OPTIONS
from services.chassis.in_flight import InFlight
from services.chassis.status import guard

CLEANUP_S = 5.0
"""Longest wait for aborted handlers to free what they hold."""

_CHANNELZ = "grpc.channelz.v1.Channelz"


class PortInUse(OSError):
    """Another process listens on the address."""

    def __init__(self, address: str) -> None:
        super().__init__(f"cannot listen on {address}: the port is in use or not ours to take")


@dataclass(frozen=True, slots=True)
class ServiceEntry:
    """One service of a server.

    ``name`` is the full proto name, ``add`` the generated add_..._to_server and
    ``lasting`` the RPCs that stream until the server ends.
    """

    name: str
    add: Callable[[Any, Any], None]
    servicer: object
    lasting: frozenset[str] = frozenset()


class RpcServer:
    """One port, in plain text without ``credentials``. Started once, stopped once.

    ``shared``: with other processes that say so too.
    """

    def __init__(
        self,
        address: str,
        services: Sequence[ServiceEntry],
        *,
        channelz: bool = False,
        credentials: grpc.ServerCredentials | None = None,
        interceptors: Sequence[grpc.aio.ServerInterceptor] = (),
        shared: bool = False,
    ) -> None:
        self._address = address
        self._services = tuple(services)
        self._channelz = channelz
        self._credentials = credentials
        self._server = grpc.aio.server(
            options=SHARED_OPTIONS if shared else SERVER_OPTIONS, interceptors=interceptors
        )
        self._health = health.aio.HealthServicer()
        self.calls = InFlight()

    @property
    def names(self) -> tuple[str, ...]:
        """Names whose health is reported; "" is the server as a whole."""
        return ("", *(service.name for service in self._services))

    async def start(self, *, serving: bool = False) -> int:
        """Listens and returns the port. Raises PortInUse.

        Health says NOT_SERVING until set_serving(True), unless ``serving``.
        """
        for service in self._services:
            guarded = guard(service.servicer, self.calls, service.lasting)
            service.add(guarded, self._server)
        self._add_standard_services()
        await self.set_serving(serving)
        port = self._listen()
        await self._server.start()
        return port

    def _add_standard_services(self) -> None:
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        named = [*self.names[1:], health.SERVICE_NAME, reflection.SERVICE_NAME]
        if self._channelz:
            channelz.add_channelz_servicer(self._server)
            named.append(_CHANNELZ)
        reflection.enable_server_reflection(named, self._server)

    def _listen(self) -> int:
        try:
            port = self._bind()
        except RuntimeError:
            port = 0
        if port == 0:
            raise PortInUse(self._address)
        return port

    def _bind(self) -> int:
        if self._credentials is None:
            return self._server.add_insecure_port(self._address)
        return self._server.add_secure_port(self._address, self._credentials)

    async def set_serving(self, serving: bool) -> None:
        """Health of every service of this server, told to all who watch it."""
        states = health_pb2.HealthCheckResponse
        state = states.SERVING if serving else states.NOT_SERVING
        for name in self.names:
            await self._health.set(name, state)

    async def stop(self, grace_s: float) -> bool:
        """Drains and closes; True where every call ended by itself.

        Health turns NOT_SERVING first. Streams that last as long as the server
        (health watches, reflection, the services' lasting ones) do not hold it.
        """
        await self._health.enter_graceful_shutdown()
        finished = await self.calls.idle(grace_s)
        await self._server.stop(grace=None)
        await self.calls.idle(CLEANUP_S)
        return finished
