"""A worker's record in the registry."""

from __future__ import annotations

from dataclasses import dataclass

from google.protobuf import json_format

from braid.worker.v1 import worker_pb2
from services.generation.reception import ServedModel
from services.generation.settings import WorkerSettings
from services.generation.types import Paradigm
from services.generation.wire import PARADIGMS

SUPPORTED = frozenset(
    (
        "infill",
        "edit",
        "template",
        "json_schema",
        "regex",
        "choice",
        "thinking",
        "seed",
    )
)
"""What this worker can do; a model's card may know of more."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """host:port of each port, as others reach them."""

    inference: str = ""
    admin: str = ""
    ops: str = ""


class NodeRecord:
    """Makes the record; read by the heartbeat's thread."""

    def __init__(self, settings: WorkerSettings, node_id: str, paradigm: Paradigm) -> None:
        self._settings = settings
        self._node_id = node_id
        self._paradigm = paradigm
        self.addresses = Addresses()
        self.served: ServedModel | None = None
        self._epoch = 0

    def node(self) -> worker_pb2.Node:
        """The record as it was last registered."""
        settings, served = self._settings, self.served
        name = served.served_by.name if served else settings.name
        return worker_pb2.Node(
            node_id=self._node_id,
            group=settings.group,
            address=self.addresses.inference,
            admin_address=self.addresses.admin,
            ops_address=self.addresses.ops,
            paradigm=PARADIGMS[self._paradigm],
            model=name.model,
            version=name.version,
            weight=settings.weight,
            labels=settings.label_map,
            capabilities=_capabilities(served) if served else (),
            max_context=served.limits.max_context if served else 0,
            epoch=self._epoch,
        )

    def value(self, epoch: int) -> bytes:
        """The JSON under the node's key, from ``epoch`` on."""
        self._epoch = epoch
        text = json_format.MessageToJson(self.node(), preserving_proto_field_name=True, indent=None)
        return text.encode()


def _capabilities(served: ServedModel) -> tuple[str, ...]:
    return tuple(sorted(SUPPORTED.intersection(served.card.capabilities)))
