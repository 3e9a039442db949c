"""Stores over the network: ranges, retries, and what a broken server sends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import s3fs
import structlog

from braid.config.v1.config_pb2 import ModelVersion
from services.config_center.version_folder import read_version
from services.generation.weights import WeightCache, WeightsMismatch, WeightsUnavailable
from tests.config_center.conftest import CARD
from tests.generation.weights.conftest import CONTENT, blobs, bring
from tests.generation.weights.file_server import FileServer
from tests.generation.weights.moto_server import s3_server
from tests.generation.weights.policy import POLICY

KEYS = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "SECRET-123"}


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """URL of an S3 server."""
    with s3_server() as url:
        yield url


@pytest.fixture
def bucket(s3: str, store: Path, record: ModelVersion, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The store in a bucket, which the record points to; no credentials anywhere."""
    files = s3fs.S3FileSystem(
        key="id", secret="SECRET-123", endpoint_url=s3, skip_instance_cache=True
    )
    if not files.exists("weights"):
        files.mkdir("weights")
    files.put(f"{store}/", "weights/tiny/v1/", recursive=True)
    record.uri = "s3://weights/tiny/v1"
    for name in (*KEYS, "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return files


@pytest.mark.parametrize("place", ["environment", "file"])
def test_s3_with_credentials_from_outside(
    place: str,
    bucket: Any,
    cache: WeightCache,
    record: ModelVersion,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A version comes whole from S3, with the keys of the environment or of its file."""
    if place == "environment":
        for name, value in KEYS.items():
            monkeypatch.setenv(name, value)
    else:
        lines = "".join(f"{name.lower()}={value}\n" for name, value in KEYS.items())
        (tmp_path / "credentials").write_text(f"[default]\n{lines}")
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    with structlog.testing.capture_logs() as logs:
        folder = bring(cache, record)
    assert (folder / "b.safetensors").read_bytes() == CONTENT
    assert "SECRET-123" not in str(logs)


def test_version_in_s3_can_be_registered(
    bucket: Any, record: ModelVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the config center records of a version in S3 is what workers then compare with."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    bucket.pipe_file("weights/tiny/v1/braid.json", json.dumps(CARD).encode())
    found = read_version(record.uri).files
    assert [file.path for file in found] == ["a.json", "b.safetensors", "braid.json"]
    assert list(found[:2]) == list(record.files)


@pytest.mark.parametrize("fault", ["flip", "truncate", "gone"])
def test_wrong_object_in_s3_is_refused(
    fault: str,
    bucket: Any,
    cache: WeightCache,
    record: ModelVersion,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An object that is another one, shorter or gone never gets a name in the cache."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    path = "weights/tiny/v1/b.safetensors"
    if fault == "gone":
        bucket.rm_file(path)
    else:
        bucket.pipe_file(path, CONTENT[:-1] if fault == "truncate" else b"\1" + CONTENT[1:])
    wanted = WeightsUnavailable if fault == "gone" else WeightsMismatch
    with pytest.raises(wanted, match=r"b\.safetensors"):
        cache.fetch(record)
    assert record.files[1].sha256 not in blobs(tmp_path / "cache")


def test_http_comes_in_ranges(cache: WeightCache, record: ModelVersion, server: FileServer) -> None:
    """A file comes over HTTP in as many requests as it has ranges, and each byte once."""
    assert (bring(cache, record) / "b.safetensors").read_bytes() == CONTENT
    assert server.reads == 1 + len(CONTENT) // POLICY.range_bytes
    assert server.sent_bytes == 2 + len(CONTENT)


@pytest.mark.parametrize("fault", ["failures", "cuts"])
def test_passing_faults_are_waited_out(
    fault: str, cache: WeightCache, record: ModelVersion, server: FileServer
) -> None:
    """A server that fails, or breaks answers off, for a moment costs a retry and no more."""
    setattr(server, fault, POLICY.attempts - 1)
    assert (bring(cache, record) / "b.safetensors").read_bytes() == CONTENT


def test_retries_are_bounded(cache: WeightCache, record: ModelVersion, server: FileServer) -> None:
    """A server that only fails is given up, with the file's name."""
    server.failures = 10_000
    with pytest.raises(WeightsUnavailable, match=r"a\.json: .*503"):
        cache.fetch(record)
    assert 10_000 - server.failures == POLICY.attempts


def test_page_in_place_of_a_file_is_set_aside(
    cache: WeightCache, record: ModelVersion, server: FileServer, tmp_path: Path
) -> None:
    """HTML sent with 200 for whatever is asked is never taken for weights."""
    server.page = "<html>log in first</html>"
    with structlog.testing.capture_logs() as logs, pytest.raises(WeightsMismatch):
        cache.fetch(record)
    lines = [line for line in logs if line["event"] == "weights_mismatch"]
    assert Path(lines[-1]["set_aside"]).read_text() == server.page
    assert blobs(tmp_path / "cache") == {f"{record.files[0].sha256}.bad"}


def test_file_that_http_lacks_is_named(
    cache: WeightCache, record: ModelVersion, server: FileServer, store: Path
) -> None:
    """404 is an answer: once fsspec has looked in both its ways, nobody asks again."""
    (store / "b.safetensors").unlink()
    with pytest.raises(WeightsUnavailable, match=r"b\.safetensors: no such file in the store"):
        cache.fetch(record)
    assert server.reads == 1 + 1


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("relative", "is not SCHEME"),
        ("file://host/v1", "names another host"),
        ("warp://host/v1", "no scheme that fsspec knows"),
        ("simplecache::s3://bucket/v1", "is not SCHEME"),
    ],
)
def test_store_that_cannot_be_spoken_to_is_named(
    uri: str, reason: str, cache: WeightCache, record: ModelVersion
) -> None:
    """A URI that names no store is refused with what is wrong with it."""
    record.uri = uri
    with pytest.raises(WeightsUnavailable, match=f"{uri}.*{reason}"):
        cache.fetch(record)


@pytest.mark.parametrize(
    "uri",
    ["s3://id:SECRET-123@bucket/v1", "https://host/v1?token=SECRET-123", "http://h/#SECRET-123"],
)
def test_secret_in_a_uri_is_refused_and_not_repeated(
    uri: str, cache: WeightCache, record: ModelVersion
) -> None:
    """Credentials never stand in a record, and the refusal does not show them."""
    record.uri = uri
    with pytest.raises(WeightsUnavailable, match="credentials come from the env") as caught:
        cache.fetch(record)
    assert "SECRET-123" not in str(caught.value)
