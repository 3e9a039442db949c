"""What a worker's failure means for its node and for the call."""

from __future__ import annotations

import grpc
import grpc.aio
import pytest

from services.chassis.errors import (
    Draining,
    EngineFailure,
    EngineStalled,
    InvalidRequest,
    QueueFull,
    ServiceError,
)
from services.chassis.status import DETAILS_KEY, to_status
from services.router.worker_failures import blames_node, may_go_again, never_started


def error_of(code: grpc.StatusCode, details: str = "") -> grpc.aio.AioRpcError:
    """A failure of the connection: no ErrorInfo."""
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), details)


def error_from(error: ServiceError) -> grpc.aio.AioRpcError:
    """A status that a worker gave."""
    trailers = grpc.aio.Metadata((DETAILS_KEY, to_status(error).SerializeToString()))
    return grpc.aio.AioRpcError(error.code, grpc.aio.Metadata(), trailers, error.message)


UNREACHED = error_of(grpc.StatusCode.UNAVAILABLE, "failed to connect to all addresses; ...")
CUT = error_of(grpc.StatusCode.UNAVAILABLE, "recvmsg: connection reset by peer")
LATE = error_of(grpc.StatusCode.DEADLINE_EXCEEDED)


@pytest.mark.parametrize(
    ("error", "blamed", "unstarted"),
    [
        (UNREACHED, True, True),
        (CUT, True, False),
        (LATE, False, False),
        (error_from(EngineFailure("x")), True, False),
        (error_from(EngineStalled("x")), True, False),
        (error_from(QueueFull("x")), False, True),
        (error_from(Draining("x")), False, True),
        (error_from(InvalidRequest("x")), False, False),
    ],
)
def test_each_failure(error: grpc.aio.AioRpcError, blamed: bool, unstarted: bool) -> None:
    """Bad requests, back-pressure and lateness blame nobody; what began stays where it was."""
    assert (blames_node(error), never_started(error)) == (blamed, unstarted)
    assert may_go_again(error, retry_safe=False) == unstarted
    assert may_go_again(error, retry_safe=True) == (blamed or unstarted)
