"""Reads a version's folder: its files with size and hash, and its card."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from braid.config.v1 import config_pb2
from braid.inference.v1 import inference_pb2
from services.chassis.errors import InvalidRequest

CARD = "braid.json"
_CARD_LIMIT_BYTES = 256 * 1024
_CHUNK_BYTES = 1024 * 1024
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


def folder_of(uri: str) -> Path:
    """The local folder that a file:// URI names. Raises InvalidRequest naming ``uri``."""
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        raise InvalidRequest.field("uri", "must be file:///absolute/path")
    folder = Path(unquote(parts.path))
    if ".." in folder.parts:
        raise InvalidRequest.field("uri", "must not contain ..")
    if not folder.is_dir():
        raise InvalidRequest.field("uri", "is not a folder that the config center can read")
    return folder


def read_version(folder: Path) -> VersionFolder:
    """Hashes every file and reads the card; blocks for as long as that takes.

    Raises InvalidRequest naming ``uri`` and what is wrong in the folder.
    """
    card = _read_card(folder / CARD)
    files = tuple(_describe(folder, path) for path in _paths(folder))
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


def _paths(folder: Path) -> list[Path]:
    root = folder.resolve()
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    if len(paths) > _FILES_LIMIT:
        raise InvalidRequest.field("uri", f"holds more than {_FILES_LIMIT} files")
    for path in paths:
        if not path.resolve().is_relative_to(root):
            raise InvalidRequest.field("uri", f"{path.name} is a link out of the folder")
    return paths


def _describe(folder: Path, path: Path) -> config_pb2.ModelFile:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return config_pb2.ModelFile(
        path=path.relative_to(folder).as_posix(),
        size_bytes=path.stat().st_size,
        sha256=digest.hexdigest(),
    )


def _read_card(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > _CARD_LIMIT_BYTES:
            raise InvalidRequest.field("uri", f"{CARD} is over {_CARD_LIMIT_BYTES} bytes")
        card = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidRequest.field("uri", f"holds no {CARD}") from None
    except (OSError, ValueError) as error:
        raise InvalidRequest.field("uri", f"{CARD}: {error}") from None
    if not isinstance(card, dict):
        raise InvalidRequest.field("uri", f"{CARD} is not a JSON object")
    return card


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
