"""The HTTP ops port: /live, /ready and /metrics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from services.chassis.server import PortInUse


@dataclass(frozen=True, slots=True)
class Readiness:
    """The three things a node must be before it gets traffic."""

    model_loaded: bool
    memory_ok: bool
    accepting: bool
    reason: str = ""

    @property
    def ready(self) -> bool:
        """Whether all three hold."""
        return self.model_loaded and self.memory_ok and self.accepting


class OpsServer:
    """Answers probes and scrapes on one port."""

    def __init__(
        self, host: str, port: int, readiness: Callable[[], Readiness], metrics: CollectorRegistry
    ) -> None:
        self._host = host
        self._port = port
        self._readiness = readiness
        self._metrics = metrics
        self._runner = web.AppRunner(self._application(), access_log=None, handle_signals=False)

    def _application(self) -> web.Application:
        application = web.Application()
        application.add_routes(
            [
                web.get("/live", self._live),
                web.get("/ready", self._ready),
                web.get("/metrics", self._scrape),
            ]
        )
        return application

    async def start(self) -> int:
        """Listens and returns the port. Raises PortInUse."""
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self._port)
        try:
            await site.start()
        except OSError:
            await self._runner.cleanup()
            raise PortInUse(f"{self._host}:{self._port}") from None
        return int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        """Closes the port."""
        await self._runner.cleanup()

    async def _live(self, _request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _ready(self, _request: web.Request) -> web.Response:
        readiness = self._readiness()
        return web.json_response(asdict(readiness), status=200 if readiness.ready else 503)

    async def _scrape(self, _request: web.Request) -> web.Response:
        body = generate_latest(self._metrics)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})
