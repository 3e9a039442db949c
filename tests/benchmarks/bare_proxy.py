"""The least a grpc.aio proxy can be: bytes in, bytes out, one upstream.

``python -m tests.benchmarks.bare_proxy PORT UPSTREAM``
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import grpc
import grpc.aio

from services.chassis.channel import SERVER_OPTIONS
from services.router.links import GENERATE, GENERATE_STREAM, SERVICE, Link

Context = grpc.aio.ServicerContext[Any, Any]


async def serve(port: str, upstream: str) -> None:
    """Serves until killed."""
    link = Link(upstream)

    async def generate(body: bytes, context: Context) -> bytes:
        answer: bytes = await link.generate(body, timeout=context.time_remaining())
        return answer

    async def generate_stream(body: bytes, context: Context) -> None:
        call = link.generate_stream(body, timeout=context.time_remaining())
        while (message := await call.read()) is not grpc.aio.EOF:
            await context.write(message)

    server = grpc.aio.server(options=SERVER_OPTIONS)
    handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
        GENERATE: grpc.unary_unary_rpc_method_handler(generate),
        GENERATE_STREAM: grpc.unary_stream_rpc_method_handler(generate_stream),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:]))
