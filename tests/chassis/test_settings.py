"""Settings from an environment."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import Field

from services.chassis.settings import NodeSettings, SettingError, Settings


class _Settings(Settings):
    port: int = Field(7000, ge=1, le=65535, description="where it listens")
    model: str = Field(description="what it serves")
    api_secret: str = Field("", description="a secret")


def test_reads_typed_values() -> None:
    """Variables become typed fields and the rest keeps its default."""
    settings = _Settings.from_env({"BRAID_MODEL": "demo", "BRAID_PORT": "8000"})
    assert settings == _Settings(model="demo", port=8000)


@pytest.mark.parametrize(
    ("environ", "variable"),
    [
        ({}, "BRAID_MODEL"),
        ({"BRAID_MODEL": ""}, "BRAID_MODEL"),
        ({"BRAID_MODEL": "demo", "BRAID_PORT": "http"}, "BRAID_PORT"),
        ({"BRAID_MODEL": "demo", "BRAID_PORT": "70000"}, "BRAID_PORT"),
    ],
)
def test_names_the_variable_at_fault(environ: dict[str, str], variable: str) -> None:
    """A missing or bad value is an error that names its variable."""
    with pytest.raises(SettingError, match=variable):
        _Settings.from_env(environ)


def test_error_does_not_quote_the_value() -> None:
    """A secret put into the wrong variable does not reach the terminal."""
    with pytest.raises(SettingError) as caught:
        _Settings.from_env({"BRAID_MODEL": "demo", "BRAID_PORT": "hunter2"})
    assert "hunter2" not in str(caught.value)


def test_reads_a_secret_from_a_file(tmp_path: Path) -> None:
    """VARIABLE_FILE names a file whose content is the value, less its last newline."""
    secret = tmp_path / "secret"
    secret.write_text("s3cret\n")
    settings = _Settings.from_env({"BRAID_MODEL": "demo", "BRAID_API_SECRET_FILE": str(secret)})
    assert settings.api_secret == "s3cret"


@pytest.mark.parametrize("both", [True, False])
def test_refuses_an_unusable_secret_file(tmp_path: Path, both: bool) -> None:
    """A missing file, or a value given twice, is an error and not an empty secret."""
    environ = {"BRAID_MODEL": "demo", "BRAID_API_SECRET_FILE": str(tmp_path / "none")}
    if both:
        environ["BRAID_API_SECRET"] = "x"
    with pytest.raises(SettingError, match="BRAID_API_SECRET"):
        _Settings.from_env(environ)


def test_is_frozen() -> None:
    """Settings cannot change after they were read."""
    settings = _Settings(model="demo")
    with pytest.raises(ValueError, match="frozen"):
        settings.port = 1  # type: ignore[misc]


def test_help_lists_each_variable_with_its_default() -> None:
    """What --help prints names every variable, its meaning and its default."""
    lines = _Settings.help().splitlines()
    assert "BRAID_PORT" in lines[0]
    assert "where it listens" in lines[0]
    assert "7000" in lines[0]
    assert "required" in lines[1]


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("BRAID_NODE_ID", "a/b"),
        ("BRAID_NODE_ID", "W 1"),
        ("BRAID_ADVERTISE_HOST", "0.0.0.0"),
        ("BRAID_ADVERTISE_HOST", "::"),
    ],
)
def test_node_that_nobody_could_find(variable: str, value: str) -> None:
    """An id that is no key, or an address that nobody can connect to, is refused at the start."""
    with pytest.raises(SettingError, match=variable):
        NodeSettings.from_env({variable: value})


def test_node_has_an_id_without_being_given_one() -> None:
    """Without settings a node is named for its host and process and reached where it listens."""
    settings = NodeSettings.from_env({})
    assert settings.own_id
    assert settings.reachable_host == settings.host


def test_source_of_each_setting_is_known(tmp_path: Path) -> None:
    """A setting comes from its variable, from the file of its variable, or is a default."""
    (tmp_path / "secret").write_text("x")
    sources = _Settings.sources(
        {"BRAID_MODEL": "demo", "BRAID_PORT": "", "BRAID_API_SECRET_FILE": f"{tmp_path}/secret"}
    )
    assert sources == {
        "model": "BRAID_MODEL",
        "port": "default",
        "api_secret": f"BRAID_API_SECRET_FILE={tmp_path}/secret",
    }
