"""Which version last served well, read from the list of changes; pure functions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from google.protobuf import json_format
from google.protobuf.message import Message

from braid.config.v1 import config_pb2
from services.chassis import documents, keys
from services.config_center.rollout.record import parse_rollout
from services.config_center.rollout.steps import ABORTED


def leading(shares: Mapping[str, int]) -> str:
    """The version with the largest share; empty where none has any."""
    best = max(sorted(shares), key=lambda version: shares[version], default="")
    return best if shares.get(best) else ""


def last_good(changes: Iterable[config_pb2.Change], model: str, present: str) -> str:
    """The version that led before ``present`` and was never taken back; empty where none.

    Taken back is what a rollback or an aborted rollout took out of traffic.
    """
    listed = list(changes)
    bad = set(_taken_back(listed, model))
    led = [version for version in _leaders(listed, keys.traffic_key(model)) if version]
    good = [version for version in led if version != present and version not in bad]
    return good[-1] if good else ""


def _leaders(changes: Iterable[config_pb2.Change], key: str) -> Iterator[str]:
    for change in changes:
        for part in change.keys:
            if part.key == key and not part.rejected:
                yield from (_leader(key, value) for value in (part.before, part.after) if value)


def _leader(key: str, value: str) -> str:
    try:
        return leading(documents.parse_shares(key, value.encode()))
    except ValueError:
        return ""


def _taken_back(changes: Iterable[config_pb2.Change], model: str) -> Iterator[str]:
    for change in changes:
        of_model = any(part.key == keys.traffic_key(model) for part in change.keys)
        if change.rolled_back and of_model:
            yield change.rolled_back
        for part in change.keys:
            if part.key == keys.rollout_key(model) and part.after:
                yield from _aborted(part.key, part.after)


def _aborted(key: str, value: str) -> Iterator[str]:
    try:
        rollout = parse_rollout(key, value.encode())
    except ValueError:
        return
    if rollout.state == ABORTED:
        yield rollout.candidate


def differences(
    before: Message | Mapping[str, int], after: Message | Mapping[str, int], path: str = ""
) -> list[config_pb2.Difference]:
    """How two records differ, by path."""
    old, new = (dict(_leaves(_plain(it), path)) for it in (before, after))
    return [
        config_pb2.Difference(path=name, before=old.get(name, ""), after=new.get(name, ""))
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    ]


def _plain(record: Message | Mapping[str, int]) -> object:
    if isinstance(record, Message):
        return json_format.MessageToDict(record, preserving_proto_field_name=True)
    return dict(record)


def _leaves(value: object, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _leaves(part, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            name = part.get("path", index) if isinstance(part, dict) else index
            yield from _leaves(part, f"{path}[{name}]")
    else:
        yield path, json.dumps(value, ensure_ascii=False)
