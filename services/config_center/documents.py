"""How each kind of configuration is spelled in etcd."""

from __future__ import annotations

from braid.config.v1 import config_pb2
from braid.routing.v1 import routing_pb2
from services.chassis.documents import message_parser, parse_shares
from services.chassis.security.caller_record import parse_caller
from services.config_center.rendering import render_message, render_shares
from services.config_center.rollout.record import parse_rollout
from services.config_center.store import Document

MODEL_VERSION = Document(message_parser(config_pb2.ModelVersion), render_message)
POLICY = Document(message_parser(routing_pb2.Policy), render_message)
CALLER = Document(parse_caller, render_message)
GROUP = Document(message_parser(config_pb2.Group), render_message)
SHARES = Document(parse_shares, render_shares)
ROLLOUT = Document(parse_rollout, render_message)
