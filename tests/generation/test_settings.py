"""What a worker is told through its environment."""

from __future__ import annotations

import pytest

from services.chassis.settings import SettingError
from services.generation.settings import WorkerSettings

LEAST = {"BRAID_GROUP": "g", "BRAID_MODEL": "m", "BRAID_VERSION": "v1"}


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("BRAID_VERSION", "../../tmp/evil"),
        ("BRAID_VERSION", "/tmp/evil"),
        ("BRAID_VERSION", "latest"),
        ("BRAID_MODEL", "a/b"),
        ("BRAID_DTYPE", "float8"),
        ("BRAID_MEMORY_FRACTION", "0"),
        ("BRAID_MEMORY_FRACTION", "1.5"),
        ("BRAID_FETCH_PARALLEL", "0"),
        ("BRAID_CACHE_MAX_BYTES", "-1"),
    ],
)
def test_bad_value_is_named_by_its_variable(variable: str, value: str) -> None:
    """A version that is a path or moves, and figures out of their range, never start a worker."""
    WorkerSettings.from_env(LEAST)
    with pytest.raises(SettingError, match=variable):
        WorkerSettings.from_env(LEAST | {variable: value})
