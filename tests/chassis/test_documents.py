"""Values that operators write into etcd by hand."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st

from braid.config.v1 import config_pb2
from braid.routing.v1 import routing_pb2
from braid.worker.v1 import worker_pb2
from services.chassis.documents import (
    DocumentError,
    message_parser,
    parse,
    parse_shares,
    parse_weight,
)

POLICY = {
    "rules": [
        {
            "name": "fast",
            "match": {"tasks": ["TASK_TEXT_EDITING"], "min_prompt_bytes": 30},
            "route": {"groups": [{"group": "diffusion", "share": 3}], "fallback": ["ar"]},
        }
    ],
    "default": {"groups": [{"group": "ar"}]},
}


def policy(data: bytes) -> routing_pb2.Policy:
    return parse("/braid/policy", data, routing_pb2.Policy)


def as_bytes(document: object) -> bytes:
    return json.dumps(document).encode()


def test_good_policy() -> None:
    """A policy in proto field names comes out as the message."""
    parsed = policy(as_bytes(POLICY))
    assert parsed.rules[0].match.min_prompt_bytes == 30
    assert parsed.default.groups[0].group == "ar"


def test_trailing_newline() -> None:
    """The newline that an editor or echo leaves at the end is no fault."""
    assert policy(as_bytes(POLICY) + b"\n") == policy(as_bytes(POLICY))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'{"rules":[],}', "not JSON"),
        (b"", "empty"),
        (b"\n", "empty"),
        (b"null", "is null"),
        (b"[]", "is a list"),
        (b"true", "is true"),
        (b"3", "is a number"),
        (as_bytes(json.dumps(POLICY)), "quoted once too often"),
        (b"\xef\xbb\xbf" + as_bytes(POLICY), "byte order mark"),
        (b'{"rules":[]}\xff', "UTF-8"),
        (b'{"rulez":[]}', "rulez is not a field of Policy"),
        (b'{"default":{"groups":[{"group":"ar","share":"30"}]}}', "share must be a whole number"),
        (b'{"default":{"groups":[{"group":"ar","share":30.0}]}}', "share must be a whole number"),
        (b'{"default":{"groups":[{"group":"ar","share":true}]}}', "share must be a whole number"),
        (b'{"default":{"groups":[{"group":"ar","share":-1}]}}', "share"),
        (b'{"default":{"groups":[{"group":7}]}}', "group must be a string"),
        (b'{"default":{"groups":{"group":"ar"}}}', "groups must be a list"),
        (b'{"default":null}', "default must be an object, not null"),
        (b'{"rules":[],"rules":[]}', "'rules' twice"),
        (b'{"rules":[{"match":{"tasks":["TASK_NO_SUCH"]}}]}', "must be one of"),
        (b'{"rules":[{"match":{"tasks":[1]}}]}', "must be a string"),
        (b'{"rules":[{"match":{"labels":{"a":1}}}]}', "labels.a must be a string"),
        (b'{"rules":[{"match":{"labels":[]}}]}', "labels must be an object"),
        (b'{"rules":[{"name":"\\ud800"}]}', ""),
        (b'{"rules":[{"match":{"latency_budget_at_most":"soon"}}]}', ""),
        (b"[" * 100_000, "nested"),
        (b'{"rules":' * 5_000, ""),
        (b"9" * 5_000, ""),
    ],
)
def test_doubtful_policy(data: bytes, reason: str) -> None:
    """A doubtful value is refused whole, with one short line that says why."""
    with pytest.raises(DocumentError) as caught:
        policy(data)
    assert reason in caught.value.reason
    assert "\n" not in caught.value.reason
    assert len(caught.value.reason) <= 300
    assert caught.value.key == "/braid/policy"


def test_infinite_number() -> None:
    """A number beyond a double is refused rather than read as infinity."""
    for text in (b'{"confidence_threshold":1e999}', b'{"confidence_threshold":NaN}'):
        with pytest.raises(DocumentError):
            parse("/braid/groups/g", text, config_pb2.Group)


def test_whole_number_for_a_real_one() -> None:
    """1 is as good as 1.0 where a real number is wanted."""
    assert parse("k", b'{"confidence_threshold":1}', config_pb2.Group).confidence_threshold == 1.0


def test_wide_numbers_may_be_strings() -> None:
    """A 64-bit number is taken as a number and as the string that protobuf writes."""
    for text in (b'{"epoch":1796070265723}', b'{"epoch":"1796070265723"}'):
        assert parse("k", text, worker_pb2.Node).epoch == 1796070265723
    with pytest.raises(DocumentError):
        parse("k", b'{"epoch":"now"}', worker_pb2.Node)


def test_struct_field_takes_any_json() -> None:
    """A field that holds free JSON, null included, is left to protobuf."""
    parsed = parse("k", b'{"defaults":{"a":[1,null,"x"]}}', config_pb2.ModelVersion)
    assert json_format.MessageToDict(parsed.defaults) == {"a": [1, None, "x"]}


@given(
    st.builds(
        worker_pb2.Node,
        node_id=st.text(max_size=8),
        weight=st.none() | st.integers(0, 2**32 - 1),
        labels=st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=3),
        capabilities=st.lists(st.text(max_size=5), max_size=3),
        epoch=st.integers(0, 2**64 - 1),
        paradigm=st.sampled_from([0, 1, 2]),
    ),
    st.booleans(),
)
def test_what_protobuf_writes_is_read(node: worker_pb2.Node, proto_names: bool) -> None:
    """Any node that protobuf's own writer spells, in either style of names, comes back equal."""
    text = json_format.MessageToJson(node, preserving_proto_field_name=proto_names)
    assert parse("k", text.encode(), worker_pb2.Node) == node


@given(st.binary(max_size=40) | st.text(max_size=40).map(lambda text: text.encode()))
def test_no_bytes_break_the_parser(data: bytes) -> None:
    """Whatever lies under a key, the outcome is a value or DocumentError."""
    parsers: tuple[Callable[[str, bytes], object], ...] = (
        parse_shares,
        parse_weight,
        message_parser(routing_pb2.Policy),
    )
    for parser in parsers:
        try:
            parser("k", data)
        except DocumentError:
            continue


def test_shares() -> None:
    """Traffic shares are a plain object from version to share."""
    assert parse_shares("k", b'{"v1.2": 95, "v1.3": 5}\n') == {"v1.2": 95, "v1.3": 5}


@pytest.mark.parametrize(
    "data",
    [b'{"v1": "95"}', b'{"v1": -1}', b'{"v1": 1001}', b'{"v1": true}', b'{"V 1": 5}', b"[]", b"5"],
)
def test_bad_shares(data: bytes) -> None:
    """A share is a whole number from 0 to 1000 of a version that can exist."""
    with pytest.raises(DocumentError):
        parse_shares("k", data)


def test_weight() -> None:
    """A weight is a bare number."""
    assert parse_weight("k", b"0\n") == 0
    for bad in (b"", b"-1", b"1001", b'"5"', b"5.0", b"true", b"null", b"{}"):
        with pytest.raises(DocumentError):
            parse_weight("k", bad)
