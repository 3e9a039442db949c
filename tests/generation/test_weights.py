"""Weights on their way into the cache: verified, whole, and never out of their folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import structlog

from braid.config.v1.config_pb2 import ModelFile, ModelVersion
from services.generation.weights import (
    EXIT_MISMATCH,
    WeightCache,
    WeightsMismatch,
    WeightsUnavailable,
)
from tests.checkpoints import record_of


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A version's folder in a store."""
    folder = tmp_path / "store" / "v1"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.json").write_text("{}")
    (folder / "b.bin").write_bytes(bytes(range(256)) * 100)
    return folder


@pytest.fixture
def record(store: Path) -> ModelVersion:
    """Its record."""
    shutil.rmtree(store / "deep")
    return record_of(store)


@pytest.fixture
def cache(tmp_path: Path) -> WeightCache:
    """An empty cache."""
    return WeightCache(tmp_path / "cache")


def bring(cache: WeightCache, record: ModelVersion) -> Path:
    return cache.verify(record, cache.fetch(record))


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_files_arrive_whole(cache: WeightCache, record: ModelVersion, store: Path) -> None:
    """The recorded files, and no others, are in the cache afterwards."""
    (store / "unrecorded.txt").write_text("x")
    folder = bring(cache, record)
    assert names(folder) == {"a.json", "b.bin"}
    assert (folder / "b.bin").read_bytes() == (store / "b.bin").read_bytes()
    assert names(folder.parent) == {"v1"}


def test_kept_copy_is_used(cache: WeightCache, record: ModelVersion, store: Path) -> None:
    """A version that is in the cache needs its store no more."""
    first = bring(cache, record)
    shutil.rmtree(store)
    assert bring(cache, record) == first


def test_upper_case_digest_is_the_same(cache: WeightCache, record: ModelVersion) -> None:
    """Digests count whatever their case."""
    for file in record.files:
        file.sha256 = file.sha256.upper()
    assert bring(cache, record).is_dir()


@pytest.mark.parametrize("fault", ["flip", "truncate", "html"])
def test_wrong_content_is_set_aside(
    fault: str, cache: WeightCache, record: ModelVersion, store: Path
) -> None:
    """Content of the wrong hash or size is refused with both figures and kept apart."""
    path, good = store / "b.bin", (store / "b.bin").read_bytes()
    spoiled = {"flip": b"\1" + good[1:], "truncate": good[:-1], "html": b"<html>no</html>"}[fault]
    path.write_bytes(spoiled)
    with structlog.testing.capture_logs() as logs, pytest.raises(WeightsMismatch) as caught:
        bring(cache, record)
    assert caught.value.exit_code == EXIT_MISMATCH
    assert "b.bin" in str(caught.value)
    if fault == "flip":
        assert record.files[1].sha256 in str(caught.value)
    [line] = [line for line in logs if line["event"] == "weights_mismatch"]
    assert line["alert"] is True
    assert (Path(line["set_aside"]) / "b.bin").read_bytes() == spoiled
    path.write_bytes(good)
    assert bring(cache, record).is_dir()


def test_spoiled_copy_is_fetched_anew(cache: WeightCache, record: ModelVersion) -> None:
    """A kept copy that has gone bad is replaced from the store."""
    folder = bring(cache, record)
    (folder / "a.json").write_text("[]")
    assert (bring(cache, record) / "a.json").read_text() == "{}"


@pytest.mark.parametrize("path", ["../evil", "/etc/passwd", "a/../../evil", "a\\b", "", "a\0b"])
def test_path_out_of_the_folder_is_refused(
    path: str, cache: WeightCache, record: ModelVersion, tmp_path: Path
) -> None:
    """A recorded path that leaves the version's folder is refused, nothing read or written."""
    record.files.append(ModelFile(path=path, size_bytes=1, sha256="0" * 64))
    with pytest.raises(WeightsUnavailable, match="leaves the folder"):
        cache.fetch(record)
    assert not (tmp_path / "cache").exists()


def test_link_out_of_the_store_is_refused(
    cache: WeightCache, record: ModelVersion, store: Path, tmp_path: Path
) -> None:
    """A file that is a link to somewhere else is not read."""
    (tmp_path / "secret").write_text("{}")
    (store / "a.json").unlink()
    (store / "a.json").symlink_to(tmp_path / "secret")
    with pytest.raises(WeightsUnavailable, match="link out of"):
        cache.fetch(record)


@pytest.mark.parametrize("uri", ["s3://bucket/v1", "http://host/v1", "file://host/v1", "relative"])
def test_store_that_cannot_be_spoken_to_is_named(
    uri: str, cache: WeightCache, record: ModelVersion
) -> None:
    """Any store but a local folder is refused by its URI."""
    record.uri = uri
    with pytest.raises(WeightsUnavailable, match=uri):
        cache.fetch(record)


def test_missing_file_is_named_and_leaves_nothing(
    cache: WeightCache, record: ModelVersion, store: Path, tmp_path: Path
) -> None:
    """A recorded file that the store lacks is named, and no half copy stays."""
    (store / "b.bin").unlink()
    with pytest.raises(WeightsUnavailable, match=r"b\.bin: No such file"):
        cache.fetch(record)
    assert names(tmp_path / "cache" / "tiny") == set()


def test_missing_store_and_empty_record_are_named(
    cache: WeightCache, record: ModelVersion, store: Path
) -> None:
    """A store that is gone and a record without files each have their error."""
    shutil.rmtree(store)
    with pytest.raises(WeightsUnavailable, match="not a folder"):
        cache.fetch(record)
    with pytest.raises(WeightsUnavailable, match="lists no files"):
        cache.fetch(ModelVersion(model="m", version="v1", uri=record.uri))


def test_cache_that_cannot_be_written_is_named(record: ModelVersion, tmp_path: Path) -> None:
    """A cache folder that cannot be made is named."""
    (tmp_path / "file").write_text("")
    with pytest.raises(WeightsUnavailable, match=str(tmp_path / "file")):
        WeightCache(tmp_path / "file" / "cache").fetch(record)


def test_two_workers_of_a_host_end_with_one_copy(cache: WeightCache, record: ModelVersion) -> None:
    """Who comes second with the same version uses the copy that is there."""
    first, second = cache.fetch(record), cache.fetch(record)
    assert first != second
    assert cache.verify(record, first) == cache.verify(record, second)
    assert names(cache.verify(record, cache.fetch(record)).parent) == {"v1"}
