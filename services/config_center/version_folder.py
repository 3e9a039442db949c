"""Reads a version's folder in its store: the files with size and hash, and the card."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from braid.config.v1 import config_pb2
from braid.inference.v1 import inference_pb2
from services.chassis.errors import InvalidRequest
from services.chassis.file_store import FileStore, StoreError, open_store
from services.chassis.pickles import is_pickle

CARD = "braid.json"
_CARD_LIMIT_BYTES = 256 * 1024
_CHUNK_BYTES = 8 * 2**20
_FILES_LIMIT = 4096

_PARADIGMS = {
    "autoregressive": inference_pb2.PARADIGM_AUTOREGRESSIVE,
    "diffusion_gemma": inference_pb2.PARADIGM_DIFFUSION,
    "masked_block_diffusion": inference_pb2.PARADIGM_DIFFUSION,
    "masked_diffusion": inference_pb2.PARADIGM_DIFFUSION,
}


@dataclass(frozen=True, slots=True)
class VersionFolder:
    """What a folder holds: the files in order of path, and the card's facts."""

    files: tuple[config_pb2.ModelFile, ...]
    family: str
    paradigm: inference_pb2.Paradigm
    parameters_total: int
    parameters_active: int
    max_context: int
    defaults: dict[str, Any]


def read_version(uri: str) -> VersionFolder:
    """Hashes every file and reads the card; blocks for as long as that takes.

    Raises InvalidRequest naming ``uri`` and what is wrong with the folder.
    """
    try:
        store = open_store(uri)
        card = _read_card(store)
        files = tuple(_describe(store, path) for path in _paths(store))
    except StoreError as error:
        raise InvalidRequest.field("uri", str(error)) from None
    return VersionFolder(files=files, **_facts(card))


def differences(
    found: tuple[config_pb2.ModelFile, ...], expected: list[config_pb2.ModelFile]
) -> list[str]:
    """How ``found`` differs from what the caller expects, one line a file."""
    actual = {file.path: file for file in found}
    wanted = {file.path: file for file in expected}
    lines = [f"{path}: missing" for path in sorted(wanted.keys() - actual.keys())]
    lines += [f"{path}: not expected" for path in sorted(actual.keys() - wanted.keys())]
    for path in sorted(wanted.keys() & actual.keys()):
        if wanted[path].sha256.lower() != actual[path].sha256:
            lines.append(f"{path}: sha256 is {actual[path].sha256}, not {wanted[path].sha256}")
        elif wanted[path].size_bytes not in (0, actual[path].size_bytes):
            lines.append(f"{path}: {actual[path].size_bytes} bytes, not {wanted[path].size_bytes}")
    return lines


def _paths(store: FileStore) -> list[str]:
    with _reading("its files"):
        paths = store.paths()
    if len(paths) > _FILES_LIMIT:
        raise InvalidRequest.field("uri", f"holds more than {_FILES_LIMIT} files")
    for path in paths:
        if is_pickle(path):
            raise InvalidRequest.field("uri", f"{path} may be a pickle, which runs code")
    return paths


def _describe(store: FileStore, path: str) -> config_pb2.ModelFile:
    digest, size = hashlib.sha256(), 0
    with _reading(path):
        whole = store.size(path)
        while whole is None or size < whole:
            chunk = store.read(path, size, size + _CHUNK_BYTES)
            digest.update(chunk)
            size += len(chunk)
            if not chunk:
                break
    return config_pb2.ModelFile(path=path, size_bytes=size, sha256=digest.hexdigest())


def _read_card(store: FileStore) -> dict[str, Any]:
    with _reading(CARD):
        data = store.read(CARD, 0, _CARD_LIMIT_BYTES + 1)
    if len(data) > _CARD_LIMIT_BYTES:
        raise InvalidRequest.field("uri", f"{CARD} is over {_CARD_LIMIT_BYTES} bytes")
    try:
        card = json.loads(data.decode("utf-8"))
    except ValueError as error:
        raise InvalidRequest.field("uri", f"{CARD}: {error}") from None
    if not isinstance(card, dict):
        raise InvalidRequest.field("uri", f"{CARD} is not a JSON object")
    return card


@contextmanager
def _reading(what: str) -> Iterator[None]:
    """Whatever a store's library raises, as a fault of the request's uri."""
    try:
        yield
    except (StoreError, InvalidRequest):
        raise
    except FileNotFoundError:
        raise InvalidRequest.field("uri", f"holds no {what}") from None
    except Exception as error:  # every store has faults of its own
        words = getattr(error, "strerror", None) or type(error).__name__
        raise InvalidRequest.field("uri", f"{what}: {words}") from None


def _facts(card: dict[str, Any]) -> dict[str, Any]:
    family = card.get("family")
    if family not in _PARADIGMS:
        known = ", ".join(sorted(_PARADIGMS))
        raise InvalidRequest.field("uri", f"{CARD}: family is none of {known}")
    total = _count(card, "parameters_total")
    return {
        "family": family,
        "paradigm": _PARADIGMS[family],
        "parameters_total": total,
        "parameters_active": _count(card, "parameters_active", total),
        "max_context": _count(card, "max_context"),
        "defaults": card.get("defaults") or {},
    }


def _count(card: dict[str, Any], name: str, default: int | None = None) -> int:
    value = card.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise InvalidRequest.field("uri", f"{CARD}: {name} is not a positive integer")
    return value
