"""An HTTP server over a folder that answers ranges, slowly or wrongly where a test asks for it."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from aiohttp import web

PIECE_BYTES = 1024


class FileServer:
    """Serves ``folder`` on a thread of its own while it is entered."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.pause_s = 0.0
        """After each piece that is sent."""
        self.failures = 0
        """Requests that are answered with 503 from here on."""
        self.cuts = 0
        """Answers that end in their middle from here on."""
        self.page = ""
        """What every request is answered with, and 200, where it is set."""
        self.sent_bytes = 0
        self.reads = 0

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self._listening = threading.Event()
        self._thread.start()
        self._listening.wait()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._closed.set)
        self._thread.join()

    @property
    def uri(self) -> str:
        """Of the folder."""
        return f"http://127.0.0.1:{self._port}"

    async def _run(self) -> None:
        self._loop, self._closed = asyncio.get_running_loop(), asyncio.Event()
        application = web.Application()
        application.add_routes([web.get("/{path:.*}", self._answer)])
        runner = web.AppRunner(application, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self._port = runner.addresses[0][1]
        self._listening.set()
        await self._closed.wait()
        await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        path = self._folder / request.match_info["path"]
        if request.method == "HEAD":
            length = len(self.page) or (path.stat().st_size if path.is_file() else None)
            status = 404 if length is None else 200
            return web.Response(status=status, headers={"Content-Length": str(length or 0)})
        self.reads += 1
        if self.failures:
            self.failures -= 1
            return web.Response(status=503)
        if self.page:
            return web.Response(text=self.page, content_type="text/html")
        if not path.is_file():
            return web.Response(status=404)
        return await self._send(request, path.read_bytes()[request.http_range])

    async def _send(self, request: web.Request, data: bytes) -> web.StreamResponse:
        answer = web.StreamResponse(status=206, headers={"Content-Length": str(len(data))})
        await answer.prepare(request)
        if self.cuts:
            self.cuts -= 1
            await answer.write(data[: len(data) // 2])
            assert request.transport is not None
            request.transport.close()
            return answer
        for start in range(0, len(data), PIECE_BYTES):
            piece = data[start : start + PIECE_BYTES]
            await answer.write(piece)
            self.sent_bytes += len(piece)
            await asyncio.sleep(self.pause_s)
        return answer
