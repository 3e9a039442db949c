"""Reading a version's folder."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import fsspec
import pytest

from braid.config.v1 import config_pb2
from braid.inference.v1 import inference_pb2
from services.chassis.errors import InvalidRequest
from services.config_center.version_folder import differences, read_version
from tests.config_center.conftest import CARD


def test_files_have_size_and_hash(version_folder: Path) -> None:
    """Every file is listed by path with what it holds."""
    found = {file.path: file for file in read_version(version_folder.as_uri()).files}
    assert found.keys() == {"braid.json", "model.safetensors"}
    assert found["model.safetensors"].sha256 == hashlib.sha256(b"weights").hexdigest()
    assert found["model.safetensors"].size_bytes == len(b"weights")


def test_card_gives_the_facts(version_folder: Path) -> None:
    """Family, paradigm and parameters come from the card; a dense model is active as a whole."""
    folder = read_version(version_folder.as_uri())
    assert folder.paradigm == inference_pb2.PARADIGM_DIFFUSION
    assert folder.parameters_active == folder.parameters_total == CARD["parameters_total"]


@pytest.mark.parametrize(
    ("card", "told"),
    [
        ("{", "braid.json"),
        ("[]", "not a JSON object"),
        (json.dumps({**CARD, "family": "unknown"}), "family"),
        (json.dumps({**CARD, "max_context": 0}), "max_context"),
        (json.dumps({**CARD, "parameters_total": True}), "parameters_total"),
    ],
)
def test_bad_card_is_named(version_folder: Path, card: str, told: str) -> None:
    """What is wrong in the card is said, with the file's name."""
    (version_folder / "braid.json").write_text(card)
    with pytest.raises(InvalidRequest, match=told):
        read_version(version_folder.as_uri())


def test_link_out_of_the_folder_is_refused(version_folder: Path, tmp_path: Path) -> None:
    """A version is what its folder holds, so nothing outside is read."""
    (tmp_path / "secret").write_text("x")
    (version_folder / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(InvalidRequest, match="link out of the folder"):
        read_version(version_folder.as_uri())


def test_pickle_is_refused_by_name(version_folder: Path) -> None:
    """What no worker would load is not recorded."""
    (version_folder / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(InvalidRequest, match=r"pytorch_model\.bin may be a pickle"):
        read_version(version_folder.as_uri())


@pytest.mark.parametrize(
    "uri",
    ["", "/tmp", "warp://host/x", "file://host/x", "file:///a/../b", "s3://id:key@bucket/v1"],
)
def test_uri_that_names_no_store_is_refused(uri: str) -> None:
    """Unknown schemes, other hosts, climbing paths and credentials are refused by field."""
    with pytest.raises(InvalidRequest, match=r"^uri: "):
        read_version(uri)


def test_other_stores_are_read_alike(version_folder: Path) -> None:
    """A version in a store of fsspec has the files and hashes of the same one in a folder."""
    files = fsspec.filesystem("memory")
    files.put(f"{version_folder}/", "/models/demo/v1/", recursive=True)
    assert read_version("memory://models/demo/v1") == read_version(version_folder.as_uri())
    files.rm("/models/demo/v1/braid.json")
    with pytest.raises(InvalidRequest, match=r"holds no braid\.json"):
        read_version("memory://models/demo/v1")


def test_differences_name_each_file() -> None:
    """A file too few, one too many, another hash and another size are told apart."""
    found = tuple(
        config_pb2.ModelFile(path=path, size_bytes=1, sha256="aa") for path in ("a", "b", "c")
    )
    expected = [
        config_pb2.ModelFile(path="b", size_bytes=1, sha256="bb"),
        config_pb2.ModelFile(path="c", size_bytes=2, sha256="AA"),
        config_pb2.ModelFile(path="d"),
    ]
    paths = [line.split(":")[0] for line in differences(found, expected)]
    assert paths == ["d", "a", "b", "c"]


def test_upper_case_hash_is_the_same_hash() -> None:
    """Hexadecimal digits may be of either case."""
    found = (config_pb2.ModelFile(path="a", size_bytes=1, sha256="ab"),)
    assert differences(found, [config_pb2.ModelFile(path="a", sha256="AB")]) == []
