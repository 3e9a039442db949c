"""What a version's record may ask for; anything else is refused before a byte is read."""

from __future__ import annotations

import hashlib
import re
from pathlib import PurePosixPath

from braid.config.v1.config_pb2 import ModelFile, ModelVersion
from services.chassis.ids import is_id, is_version
from services.chassis.pickles import is_pickle
from services.generation.weights.faults import WeightsUnavailable

_SHA256 = re.compile(r"[0-9a-fA-F]{64}\Z")


def check_record(record: ModelVersion) -> None:
    """Raises WeightsUnavailable naming the first thing that cannot be taken."""
    if not is_id(record.model) or not is_version(record.version):
        raise WeightsUnavailable(f"{record.model!r} {record.version!r} is no model and version")
    fault = "the record lists no files" if not record.files else _first_fault(record)
    if fault:
        raise WeightsUnavailable(f"{record.model} {record.version}: {fault}")


def digest_of(file: ModelFile) -> str:
    """The recorded sha256, in lower case."""
    return file.sha256.lower()


def key_of(record: ModelVersion) -> str:
    """Short name of this very set of files."""
    lines = sorted(f"{file.path}\0{digest_of(file)}\n" for file in record.files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:16]


def _first_fault(record: ModelVersion) -> str:
    paths = [file.path for file in record.files]
    twice = [path for path in paths if paths.count(path) > 1]
    faults = (fault for file in record.files if (fault := _fault(file)))
    return next(faults, f"{twice[0]} is listed twice" if twice else "")


def _fault(file: ModelFile) -> str:
    if not _stays_inside(file.path):
        return f"file path {file.path!r} leaves the folder"
    if is_pickle(file.path):
        return f"{file.path} may be a pickle, which runs code; only safetensors are loaded"
    if not _SHA256.match(file.sha256):
        return f"{file.path} has no sha256 of 64 hexadecimal digits"
    return ""


def _stays_inside(text: str) -> bool:
    path = PurePosixPath(text)
    inside = bool(path.parts) and not path.is_absolute() and ".." not in path.parts
    return inside and "\\" not in text and "\0" not in text
