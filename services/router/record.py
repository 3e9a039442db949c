"""A router's own record, by which routers find each other."""

from __future__ import annotations

from google.protobuf.json_format import MessageToJson

from braid.routing.v1 import routing_pb2
from services.chassis.heartbeat import ValueFactory


def record_of(router: routing_pb2.Router) -> ValueFactory:
    """Makes the JSON under /braid/routers/{node_id} from the epoch of a registration."""

    def value(epoch: int) -> bytes:
        record = routing_pb2.Router()
        record.CopyFrom(router)
        record.epoch = epoch
        return MessageToJson(record, preserving_proto_field_name=True, indent=None).encode()

    return value
