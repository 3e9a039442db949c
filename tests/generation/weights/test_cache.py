"""Weights on their way into the cache: verified, whole, and never out of their folder."""

from __future__ import annotations

import os
import shutil
import time
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
from tests.generation.weights.conftest import CONTENT, blobs, bring, names
from tests.generation.weights.policy import POLICY

WEEK_S = 8 * 24 * 3600


def test_files_arrive_whole(cache: WeightCache, record: ModelVersion, store: Path) -> None:
    """The recorded files, and no others, are in the version's folder afterwards."""
    (store / "unrecorded.txt").write_text("x")
    folder = bring(cache, record)
    assert names(folder) == {"a.json", "b.safetensors"}
    assert (folder / "b.safetensors").read_bytes() == CONTENT
    assert names(folder.parent) == {folder.name}


def test_files_in_deep_folders_keep_their_paths(cache: WeightCache, store: Path) -> None:
    """A recorded path with folders in it is the same path in the cache."""
    record = record_of(store)
    (store / "deep" / "er").mkdir(parents=True)
    (store / "a.json").rename(store / "deep" / "er" / "a.json")
    record.files[0].path = "deep/er/a.json"
    assert (bring(cache, record) / "deep" / "er" / "a.json").read_text() == "{}"


def test_content_is_kept_by_its_hash(
    cache: WeightCache, record: ModelVersion, tmp_path: Path
) -> None:
    """Two versions with the same files have them once, and a cached one needs its store no more."""
    first = bring(cache, record)
    shutil.rmtree(tmp_path / "store")
    record.version = "v2"
    second = bring(cache, record)
    assert first != second
    assert (second / "b.safetensors").read_bytes() == CONTENT
    assert blobs(tmp_path / "cache") == {file.sha256 for file in record.files}


def test_record_of_other_files_is_another_folder(
    cache: WeightCache, record: ModelVersion, store: Path
) -> None:
    """Two meshes that call different files by one version do not get each other's."""
    first = bring(cache, record)
    (store / "a.json").write_text("[]")
    assert bring(cache, record_of(store)) != first
    assert (first / "a.json").read_text() == "{}"


def test_upper_case_digest_is_the_same(cache: WeightCache, record: ModelVersion) -> None:
    """Digests count whatever their case."""
    first = bring(cache, record)
    for file in record.files:
        file.sha256 = file.sha256.upper()
    assert bring(cache, record) == first


@pytest.mark.parametrize("fault", ["flip", "truncate", "append", "html"])
def test_wrong_content_is_set_aside(
    fault: str, record: ModelVersion, store: Path, tmp_path: Path
) -> None:
    """Content of the wrong hash or size is refused with both digests, counted and kept apart."""
    counted = list[int]()
    cache = WeightCache(tmp_path / "cache", POLICY, mismatched=lambda: counted.append(1))
    spoiled = {
        "flip": b"\1" + CONTENT[1:],
        "truncate": CONTENT[:-1],
        "append": CONTENT + b"\0",
        "html": b"<html>no</html>",
    }[fault]
    (store / "b.safetensors").write_bytes(spoiled)
    with structlog.testing.capture_logs() as logs, pytest.raises(WeightsMismatch) as caught:
        bring(cache, record)
    assert caught.value.exit_code == EXIT_MISMATCH
    lines = [line for line in logs if line["event"] == "weights_mismatch"]
    assert len(lines) == len(counted) == POLICY.tries
    recorded, found = record.files[1].sha256, record_of(store).files[1].sha256
    for line in lines:
        assert line["alert"] is True
        assert (line["sha256"], line["recorded_sha256"]) == (found, recorded)
    assert f"b.safetensors: sha256 {found}, recorded {recorded}" in str(caught.value)
    assert Path(lines[-1]["set_aside"]).read_bytes() == spoiled
    assert recorded not in blobs(tmp_path / "cache")
    (store / "b.safetensors").write_bytes(CONTENT)
    assert (bring(cache, record) / "b.safetensors").read_bytes() == CONTENT


def test_spoiled_copy_is_fetched_anew(
    cache: WeightCache, record: ModelVersion, tmp_path: Path
) -> None:
    """Content that goes bad on the disk is set aside before a load and replaced from the store."""
    folder = bring(cache, record)
    place = (folder / "a.json").resolve()
    place.unlink()
    place.write_text("[]")
    with structlog.testing.capture_logs() as logs:
        assert (bring(cache, record) / "a.json").read_text() == "{}"
    [line] = [line for line in logs if line["event"] == "weights_mismatch"]
    assert Path(line["set_aside"]).read_text() == "[]"


def test_link_that_was_moved_is_put_right(
    cache: WeightCache, record: ModelVersion, tmp_path: Path
) -> None:
    """A version's folder that leads elsewhere is made anew, and what it led to is left alone."""
    (tmp_path / "other").write_text("[]")
    folder = bring(cache, record)
    (folder / "a.json").unlink()
    (folder / "a.json").symlink_to(tmp_path / "other")
    assert (bring(cache, record) / "a.json").read_text() == "{}"
    assert (tmp_path / "other").read_text() == "[]"


def test_content_cannot_be_written_over(cache: WeightCache, record: ModelVersion) -> None:
    """Nobody changes a cached file by mistake."""
    assert (bring(cache, record) / "a.json").stat().st_mode & 0o222 == 0


@pytest.mark.parametrize("path", ["../evil", "/etc/passwd", "a/../../evil", "a\\b", "", "a\0b"])
def test_path_out_of_the_folder_is_refused(
    path: str, cache: WeightCache, record: ModelVersion, tmp_path: Path
) -> None:
    """A recorded path that leaves the version's folder is refused, nothing read or written."""
    record.files.append(ModelFile(path=path, size_bytes=1, sha256="0" * 64))
    with pytest.raises(WeightsUnavailable, match="leaves the folder"):
        cache.fetch(record)
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("version", ["../../tmp/evil", "/tmp/evil", "..", "", "latest"])
def test_version_that_is_a_path_or_moves_is_refused(
    version: str, cache: WeightCache, record: ModelVersion, tmp_path: Path
) -> None:
    """A version whose name is a path, or would mean another one tomorrow, is never fetched."""
    record.version = version
    with pytest.raises(WeightsUnavailable, match="no model and version"):
        cache.fetch(record)
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("name", ["pytorch_model.bin", "a/model.PT", "x.pth", "x.pkl", "x.ckpt"])
def test_pickle_is_refused_by_name(name: str, cache: WeightCache, record: ModelVersion) -> None:
    """A record with a file that may be a pickle is refused before anything is fetched."""
    record.files.append(ModelFile(path=name, size_bytes=1, sha256="0" * 64))
    with pytest.raises(WeightsUnavailable, match=rf"{name} may be a pickle"):
        cache.fetch(record)


@pytest.mark.parametrize("sha256", ["", "0" * 63, "g" * 64, "../" + "0" * 61])
def test_digest_that_is_none_is_refused(
    sha256: str, cache: WeightCache, record: ModelVersion
) -> None:
    """A file without a whole sha256 could not be verified, and is not fetched."""
    record.files[0].sha256 = sha256
    with pytest.raises(WeightsUnavailable, match=r"a\.json has no sha256"):
        cache.fetch(record)


def test_file_listed_twice_is_refused(cache: WeightCache, record: ModelVersion) -> None:
    """A path with two digests cannot be right."""
    record.files.append(ModelFile(path="a.json", size_bytes=2, sha256="0" * 64))
    with pytest.raises(WeightsUnavailable, match=r"a\.json is listed twice"):
        cache.fetch(record)


def test_link_out_of_the_store_is_refused(
    cache: WeightCache, record: ModelVersion, store: Path, tmp_path: Path
) -> None:
    """A file that is a link to somewhere else is not read."""
    (tmp_path / "secret").write_text("{}")
    (store / "a.json").unlink()
    (store / "a.json").symlink_to(tmp_path / "secret")
    with pytest.raises(WeightsUnavailable, match="link out of"):
        cache.fetch(record)


def test_missing_file_is_named(cache: WeightCache, record: ModelVersion, store: Path) -> None:
    """A recorded file that the store lacks is named, and no version is there."""
    (store / "b.safetensors").unlink()
    with pytest.raises(WeightsUnavailable, match=r"b\.safetensors: no such file"):
        cache.fetch(record)


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


def test_disk_that_is_too_small_is_said_before_the_first_byte(
    cache: WeightCache, record: ModelVersion, store: Path, tmp_path: Path
) -> None:
    """Files that do not fit are refused with both figures, and nothing is left on the disk."""
    record.files[1].size_bytes = 2**62
    with pytest.raises(WeightsUnavailable, match=rf"{2**62 + 2} bytes are to be .* are free"):
        cache.fetch(record)
    assert blobs(tmp_path / "cache") == set()


def test_leftovers_are_swept_in_time(
    cache: WeightCache, record: ModelVersion, tmp_path: Path
) -> None:
    """What an old fetch left is removed; what a fetch of yesterday left may yet go on."""
    bring(cache, record)
    folder, old = tmp_path / "cache" / "sha256", time.time() - WEEK_S
    for name in ("0.part", "0.part.ranges", "1.bad", "2.part"):
        (folder / name).write_text("")
        if not name.startswith("2"):
            os.utime(folder / name, (old, old))
    bring(cache, record)
    assert blobs(tmp_path / "cache") == {"2.part", *(file.sha256 for file in record.files)}


def test_bound_gives_up_the_least_recently_used(record: ModelVersion, tmp_path: Path) -> None:
    """Over its bound the cache loses what was asked for longest ago, and never what is new."""
    cache = WeightCache(tmp_path / "cache", POLICY, max_bytes=len(CONTENT) + 10)
    bring(cache, record)
    folder, now = tmp_path / "cache" / "sha256", time.time()
    for number, name in enumerate(("older", "newer")):
        (folder / name).write_bytes(b"12345678")
        os.utime(folder / name, (now - WEEK_S, now - WEEK_S + number))
    bring(cache, record)
    assert blobs(tmp_path / "cache") == {"newer", *(file.sha256 for file in record.files)}
