"""Whether a value that somebody put into etcd is one that its readers take."""

from __future__ import annotations

from collections.abc import Callable

from braid.config.v1 import config_pb2
from services.chassis import documents, keys
from services.chassis.documents import DocumentError
from services.chassis.errors import ServiceError
from services.chassis.security.caller_record import parse_caller
from services.config_center.rollout.record import parse_rollout
from services.router.registry_values import parse_group, parse_policy, parse_traffic, parse_weight

Rule = Callable[[str, bytes], object]


def fault_of(key: str, value: bytes) -> str:
    """Why readers of ``key`` do not take ``value``; empty where they do."""
    rule = _rule(key)
    if rule is None:
        return ""
    try:
        rule(key, value)
    except DocumentError as error:
        return error.reason
    except (ValueError, ServiceError) as error:
        return str(error)
    return ""


def _parse_model(key: str, value: bytes) -> None:
    record = documents.parse(key, value, config_pb2.ModelVersion)
    if keys.ids_of(key, keys.MODELS, 2) != (record.model, record.version):
        raise DocumentError(key, "is not the key of its model and version")


_RULES: tuple[tuple[str, Rule], ...] = (
    (keys.POLICY, parse_policy),
    (keys.TRAFFIC, parse_traffic),
    (keys.GROUPS, parse_group),
    (keys.WEIGHTS, parse_weight),
    (keys.MODELS, _parse_model),
    (keys.CALLERS, parse_caller),
    (keys.ROLLOUTS, parse_rollout),
)


def _rule(key: str) -> Rule | None:
    return next((rule for prefix, rule in _RULES if key.startswith(prefix)), None)
