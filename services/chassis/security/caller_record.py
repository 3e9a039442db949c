"""Records of callers: what may stand in them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import ip_network

from braid.config.v1 import config_pb2
from braid.inference.v1 import inference_pb2
from services.chassis import documents
from services.chassis.documents import DocumentError
from services.chassis.errors import InvalidRequest
from services.chassis.ids import FORM, is_id
from services.chassis.keys import CALLERS, ids_of
from services.chassis.violations import Violations

MAX_KEYS = 8
MAX_NAMES = 32
MAX_LISTED = 64
MAX_RATE = 1_000_000
MAX_TOKENS = 1_000_000_000
_NAME_LENGTH = 255

_KEY_ID = re.compile(r"[0-9a-f]{16}\Z")
_SALT = re.compile(r"[0-9a-f]{32}\Z")
_HASH = re.compile(r"[0-9a-f]{64}\Z")


def parse_caller(key: str, data: bytes) -> config_pb2.Caller:
    """The record under a key in etcd; raises DocumentError."""
    ids = ids_of(key, CALLERS)
    record = documents.parse(key, data, config_pb2.Caller)
    if ids != (record.caller_id,):
        raise DocumentError(key, "is not the key of its caller_id")
    try:
        check_caller(record)
    except InvalidRequest as error:
        raise DocumentError(key, error.message) from None
    return record


def check_caller(record: config_pb2.Caller, path: str = "") -> None:
    """Raises InvalidRequest with every bad field, its name after ``path``."""
    faults = Violations()
    faults.require(is_id(record.caller_id), f"{path}caller_id", FORM)
    known = record.role in config_pb2.Role.values()
    faults.require(known, f"{path}role", "must be ROLE_CALLER or ROLE_OPERATOR")
    _check_length(faults, f"{path}keys", record.keys, MAX_KEYS)
    for index, key in enumerate(record.keys):
        well_formed = _KEY_ID.match(key.key_id) and _SALT.match(key.salt) and _HASH.match(key.hash)
        faults.require(bool(well_formed), f"{path}keys[{index}]", "is not a key's record")
    _check_length(faults, f"{path}certificate_names", record.certificate_names, MAX_NAMES)
    for index, name in enumerate(record.certificate_names):
        faults.utf8(f"{path}certificate_names[{index}]", name, 1, _NAME_LENGTH)
    _check_allowed(faults, f"{path}allowed", record.allowed)
    _check_quota(faults, f"{path}quota", record.quota)
    faults.raise_if_any()


def _check_allowed(faults: Violations, path: str, allowed: config_pb2.Allowed) -> None:
    for field in ("tasks", "models", "groups", "networks"):
        _check_length(faults, f"{path}.{field}", getattr(allowed, field), MAX_LISTED)
    for index, task in enumerate(allowed.tasks):
        known = task != inference_pb2.TASK_UNSPECIFIED and task in inference_pb2.Task.values()
        faults.require(known, f"{path}.tasks[{index}]", "must be a task")
    for field in ("models", "groups"):
        for index, name in enumerate(getattr(allowed, field)):
            faults.require(is_id(name), f"{path}.{field}[{index}]", FORM)
    for index, network in enumerate(allowed.networks):
        faults.require(
            _is_network(network), f"{path}.networks[{index}]", "must be like 10.1.0.0/16"
        )


def _check_quota(faults: Violations, path: str, quota: config_pb2.Quota) -> None:
    if quota.HasField("requests_per_second"):
        rate = quota.requests_per_second
        faults.number(f"{path}.requests_per_second", rate, 0, MAX_RATE, over=True)
    if quota.HasField("concurrency"):
        faults.integer(f"{path}.concurrency", quota.concurrency, 1, MAX_RATE)
    if quota.HasField("tokens_per_minute"):
        faults.integer(f"{path}.tokens_per_minute", quota.tokens_per_minute, 1, MAX_TOKENS)


def _check_length(faults: Violations, field: str, items: Sequence[object], most: int) -> None:
    faults.require(len(items) <= most, field, f"at most {most}, not {len(items)}")


def _is_network(text: str) -> bool:
    try:
        ip_network(text)
    except ValueError:
        return False
    return True
