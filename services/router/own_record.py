"""The router's own record, by which routers find each other."""

from __future__ import annotations

import asyncio

import structlog
from google.protobuf.json_format import MessageToJson

from braid.routing.v1 import routing_pb2
from services.chassis.errors import ServiceError
from services.chassis.heartbeat import Heartbeat
from services.chassis.keys import router_key
from services.chassis.registry import Registry

_WITHDRAWAL_S = 3.0

log = structlog.get_logger()


class OwnRecord:
    """Holds /braid/routers/{node_id} under a lease.

    The heartbeats run on the router's own loop, which never computes: a second
    loop of grpc.aio in the process would have every event of every call handed
    from thread to thread, and doubles what a call costs.
    """

    def __init__(self, registry: Registry, router: routing_pb2.Router, ttl_s: int) -> None:
        self._router = router
        key = router_key(router.node_id)
        self._heartbeat = Heartbeat(registry, key, self._value, ttl_s, on_put=lambda: None)

    async def keep(self) -> None:
        """Claims the key and keeps it; raises KeyTaken where another live router has it."""
        await self._heartbeat.keep()

    async def withdraw(self) -> None:
        """Takes the record away, once ``keep`` is cancelled.

        Leaves it to its lease where etcd does not answer.
        """
        try:
            async with asyncio.timeout(_WITHDRAWAL_S):
                await self._heartbeat.withdraw()
        except (ServiceError, TimeoutError) as error:
            log.warning("withdrawal_failed", reason=str(error))

    def _value(self, epoch: int) -> bytes:
        record = routing_pb2.Router()
        record.CopyFrom(self._router)
        record.epoch = epoch
        return MessageToJson(record, preserving_proto_field_name=True, indent=None).encode()
