"""One call to one node, in the two ways an answer comes: whole, or as a stream."""

from __future__ import annotations

import time
from typing import Any, Protocol

import grpc.aio

from services.router.links import Link
from services.router.node import TableNode
from services.router.passage import Passage

Metadata = tuple[tuple[str, str | bytes], ...]


class Attempt:
    """Counted on its node and its link until it is closed."""

    __slots__ = ("_probing", "_ticket", "body", "link", "metadata", "node", "timeout_s")

    def __init__(self, node: TableNode, link: Link, forwards: float) -> None:
        self.node = node
        self.link = link
        self.body = b""
        self.metadata: Metadata = ()
        self.timeout_s = 0.0
        link.take()
        self._ticket = node.load.start(forwards, time.monotonic())
        self._probing = not node.trusted
        if self._probing:
            node.health.probed = True

    def answered(self) -> None:
        """The call was answered, and says how long calls take."""
        self.node.load.learn(self._ticket, time.monotonic())

    def close(self) -> None:
        """Ends the counting; once."""
        self.link.release()
        self.node.load.finish(self._ticket)
        if self._probing:
            self.node.health.probed = False


class Sending(Protocol):
    """A way to send a call: the first of the answer, then the rest.

    Until ``begin`` returns, nothing has reached the caller and the call can
    still go elsewhere.
    """

    async def begin(self, attempt: Attempt) -> Any:
        """Sends the call and waits for the first message of its answer."""

    async def finish(self, passage: Passage, begun: Any) -> bytes | None:
        """Brings what ``begin`` returned, and what comes after it, to the caller."""

    def discard(self, begun: Any) -> None:
        """Lets go of what ``begin`` returned."""


class WholeAnswer:
    """The answer is one message."""

    async def begin(self, attempt: Attempt) -> bytes:
        """The answer itself."""
        answer: bytes = await attempt.link.generate(
            attempt.body, timeout=attempt.timeout_s, metadata=attempt.metadata
        )
        return answer

    async def finish(self, passage: Passage, begun: bytes) -> bytes:
        """Nothing is left to do."""
        passage.last = begun
        return begun

    def discard(self, _begun: bytes) -> None:
        """Nothing is held."""


Stream = grpc.aio.UnaryStreamCall[bytes, bytes]


class StreamedAnswer:
    """The answer is a stream of messages."""

    async def begin(self, attempt: Attempt) -> tuple[Stream, Any]:
        """The stream and its first message, which is its end where it is empty."""
        call = attempt.link.generate_stream(
            attempt.body, timeout=attempt.timeout_s, metadata=attempt.metadata
        )
        try:
            return call, await call.read()
        except BaseException:
            call.cancel()
            raise

    async def finish(self, passage: Passage, begun: tuple[Stream, Any]) -> None:
        """Passes each message on before it reads the next, so a slow reader slows its worker."""
        call, message = begun
        write = passage.context.write
        passage.streamed = True
        try:
            while message is not grpc.aio.EOF:
                await write(message)
                passage.last = message
                message = await call.read()
        finally:
            call.cancel()

    def discard(self, begun: tuple[Stream, Any]) -> None:
        """Ends the stream."""
        begun[0].cancel()
