"""A version in a store, its record, and an empty cache."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from braid.config.v1.config_pb2 import ModelVersion
from services.generation.weights import WeightCache
from tests.checkpoints import record_of
from tests.generation.weights.file_server import FileServer
from tests.generation.weights.policy import POLICY

CONTENT = bytes(range(256)) * 100


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A version's folder in a store."""
    folder = tmp_path / "store" / "v1"
    folder.mkdir(parents=True)
    (folder / "a.json").write_text("{}")
    (folder / "b.safetensors").write_bytes(CONTENT)
    return folder


@pytest.fixture
def record(store: Path) -> ModelVersion:
    """Its record."""
    return record_of(store)


@pytest.fixture
def cache(tmp_path: Path) -> WeightCache:
    """An empty cache."""
    return WeightCache(tmp_path / "cache", POLICY)


@pytest.fixture
def server(store: Path, record: ModelVersion) -> Iterator[FileServer]:
    """The store over HTTP; the record points to it."""
    with FileServer(store) as serving:
        record.uri = serving.uri
        yield serving


def bring(cache: WeightCache, record: ModelVersion) -> Path:
    """The version's verified folder."""
    return cache.verify(record, cache.fetch(record))


def blobs(folder: Path) -> set[str]:
    """Names of the files in a cache's store of content."""
    return {path.name for path in (folder / "sha256").iterdir()}


def names(folder: Path) -> set[str]:
    """Names in a folder."""
    return {path.name for path in folder.iterdir()}
