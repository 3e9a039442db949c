"""Why a mesh does not start; the message is what its operator reads."""

from __future__ import annotations

import grpc.aio

from services.cli.etcd_process import EtcdStartError
from services.cli.failure import describe


class MeshFailure(RuntimeError):
    """The mesh cannot start."""


class StateDirBusy(MeshFailure):
    """Another mesh runs in the state directory."""


class StoreMissing(MeshFailure):
    """There are no model versions where the store should be."""


class NothingToServe(MeshFailure):
    """No recorded model can be served by a group."""


class NoFreePorts(MeshFailure):
    """A port that the mesh needs is in use."""


class PartEnded(MeshFailure):
    """A part ended before it was ready."""


class WorkerFailed(MeshFailure):
    """A worker says that it cannot serve."""


class NotReadyInTime(MeshFailure):
    """Some part was still starting when the time was over."""


class CallRefused(MeshFailure):
    """A part did not do what the mesh asked of it."""


def cause_of(error: BaseException) -> BaseException:
    """The first failure in ``error``, as a MeshFailure where an operator can mend it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, grpc.aio.AioRpcError):
        return CallRefused(describe(error, "the config center"))
    if isinstance(error, TimeoutError):
        return NotReadyInTime("not everything was ready in time; the logs may tell why")
    if isinstance(error, EtcdStartError):
        return MeshFailure(str(error))
    return error
