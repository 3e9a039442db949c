"""What a command says when it cannot do what was asked: one line, and the exit code."""

from __future__ import annotations

import sys
from typing import NoReturn

import grpc
import grpc.aio
import typer
from google.rpc import error_details_pb2
from google.rpc.status_pb2 import Status

from services.chassis.status import DETAILS_KEY

EXIT_FAILED = 1


def fail(message: str) -> NoReturn:
    """Prints ``message`` as one line on standard error and ends with exit code 1."""
    print(f"braid: {one_line(message)}", file=sys.stderr)
    raise typer.Exit(EXIT_FAILED)


def one_line(text: str) -> str:
    """``text`` without line breaks and without what a terminal would obey."""
    return "".join(char if char.isprintable() else " " for char in text).strip()


def describe(error: grpc.aio.AioRpcError, target: str) -> str:
    """Reason, message, field violations and retry delay of a failed call to ``target``."""
    status = _status(error)
    if status is None and error.code() is grpc.StatusCode.UNAVAILABLE:
        return _unreachable(target, error.details() or "")
    reason = _reason(status) or error.code().name
    message = error.details() or "no message"
    return f"{reason}: {message}{_violations(status, message)}{_retry(status)}"


def _unreachable(target: str, details: str) -> str:
    """Why nobody answered, as far as gRPC says."""
    handshake = details.partition("handshake failed")[2]
    if "WRONG_VERSION_NUMBER" in handshake:
        return f"{target} speaks plain text: leave BRAID_TLS_AUTHORITY and others unset"
    if handshake:
        return f"{target} shows a certificate that is refused:{handshake.rpartition(':')[0]}"
    if "Socket closed" in details:
        return (
            f"{target} ends the connection: it may want TLS (BRAID_TLS_AUTHORITY), or a "
            "client certificate of its own authority (BRAID_TLS_CERTIFICATE, BRAID_TLS_KEY)"
        )
    return f"{target} does not answer; is the mesh up? (braid up)"


def _status(error: grpc.aio.AioRpcError) -> Status | None:
    for key, value in error.trailing_metadata() or ():
        if key == DETAILS_KEY and isinstance(value, bytes):
            return Status.FromString(value)
    return None


def _reason(status: Status | None) -> str:
    info = error_details_pb2.ErrorInfo()
    return str(info.reason) if _unpack(status, info) else ""


def _violations(status: Status | None, message: str) -> str:
    """The bad fields that the message does not name already."""
    bad = error_details_pb2.BadRequest()
    if not _unpack(status, bad):
        return ""
    texts = [f"{violation.field}: {violation.description}" for violation in bad.field_violations]
    missing = [text for text in texts if text not in message]
    return f" ({'; '.join(missing)})" if missing else ""


def _retry(status: Status | None) -> str:
    retry = error_details_pb2.RetryInfo()
    if not _unpack(status, retry):
        return ""
    return f" (retry in {retry.retry_delay.ToTimedelta().total_seconds():g} s)"


def _unpack(status: Status | None, into: object) -> bool:
    """Fills ``into`` from the detail of its type; False where there is none."""
    details = status.details if status is not None else ()
    return any(detail.Unpack(into) for detail in details)
