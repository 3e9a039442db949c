"""What may stand in the record of a caller."""

from __future__ import annotations

import pytest
from google.protobuf.json_format import ParseDict

from braid.config.v1 import config_pb2
from services.chassis.documents import DocumentError
from services.chassis.errors import InvalidRequest
from services.chassis.security.caller_record import check_caller, parse_caller


@pytest.mark.parametrize(
    ("record", "field"),
    [
        ({"caller_id": "No"}, "caller_id"),
        ({"role": 7}, "role"),
        ({"keys": [{"key_id": "a" * 16, "salt": "b" * 32, "hash": "short"}]}, "keys[0]"),
        ({"keys": [{"key_id": "A" * 16, "salt": "b" * 32, "hash": "c" * 64}] * 9}, "keys"),
        ({"certificate_names": [""]}, "certificate_names[0]"),
        ({"certificate_names": ["x" * 256]}, "certificate_names[0]"),
        ({"allowed": {"tasks": [99]}}, "allowed.tasks[0]"),
        ({"allowed": {"tasks": ["TASK_UNSPECIFIED"]}}, "allowed.tasks[0]"),
        ({"allowed": {"models": ["m", "M"]}}, "allowed.models[1]"),
        ({"allowed": {"groups": ["a/b"]}}, "allowed.groups[0]"),
        ({"allowed": {"networks": ["10.0.0.1/8"]}}, "allowed.networks[0]"),
        ({"allowed": {"models": ["m"] * 65}}, "allowed.models"),
        ({"quota": {"requests_per_second": 0}}, "quota.requests_per_second"),
        ({"quota": {"requests_per_second": "NaN"}}, "quota.requests_per_second"),
        ({"quota": {"concurrency": 0}}, "quota.concurrency"),
        ({"quota": {"tokens_per_minute": 0}}, "quota.tokens_per_minute"),
    ],
)
def test_bad_field_is_named(record: dict[str, object], field: str) -> None:
    """Each bad field is told by its path."""
    message = ParseDict({"caller_id": "editor", **record}, config_pb2.Caller())
    with pytest.raises(InvalidRequest) as caught:
        check_caller(message)
    assert field in [violation.field for violation in caught.value.violations]


def test_record_under_anothers_key() -> None:
    """A record counts only under its own id."""
    with pytest.raises(DocumentError):
        parse_caller("/braid/callers/other", b'{"caller_id": "editor"}')
