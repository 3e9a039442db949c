"""What a group serves if nobody said so."""

from __future__ import annotations

import pytest

from braid.config.v1 import config_pb2 as config
from braid.inference.v1 import inference_pb2 as inference
from services.cli.mesh_failure import NothingToServe
from services.cli.recording import newest_of


def record(model: str, version: str, paradigm: inference.Paradigm) -> config.ModelVersion:
    return config.ModelVersion(model=model, version=version, paradigm=paradigm)


def test_newest_version_of_the_paradigm() -> None:
    """The newest version of the first model that generates so."""
    records = [
        record("a", "v2", inference.PARADIGM_DIFFUSION),
        record("a", "v10", inference.PARADIGM_DIFFUSION),
        record("b", "v99", inference.PARADIGM_DIFFUSION),
        record("0", "v99", inference.PARADIGM_AUTOREGRESSIVE),
    ]
    newest = newest_of(records, inference.PARADIGM_DIFFUSION)
    assert (newest.model, newest.version) == ("a", "v10")


def test_no_model_of_the_paradigm() -> None:
    """A store without such a model is told by the paradigm."""
    records = [record("a", "v1", inference.PARADIGM_AUTOREGRESSIVE)]
    with pytest.raises(NothingToServe, match="diffusion"):
        newest_of(records, inference.PARADIGM_DIFFUSION)
