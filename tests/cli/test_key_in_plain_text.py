"""Keys stay on this machine unless the connection is protected."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from services.cli.app import app
from services.cli.client_settings import ClientSettings

KEY = "braid_secret"


@pytest.mark.parametrize(
    ("environ", "address", "sent"),
    [
        ({}, "127.0.0.1:7100", True),
        ({}, "[::1]:7100", True),
        ({}, "localhost:7100", True),
        ({}, "10.0.0.1:7100", False),
        ({}, "mesh.example:7100", False),
        ({"BRAID_TLS_AUTHORITY": __file__}, "mesh.example:7100", True),
        ({"BRAID_PLAINTEXT": "true"}, "mesh.example:7100", True),
    ],
)
def test_where_a_key_goes(environ: dict[str, str], address: str, sent: bool) -> None:
    """To loopback, over TLS, or where the user says so."""
    assert ClientSettings.from_env(environ).may_send_key(address) is sent


def test_command_says_why_it_sends_nothing(tmp_path: Path) -> None:
    """A command with a key does not call another machine in plain text, nor show the key."""
    arguments = ["generate", "--router", "203.0.113.1:1", "--state-dir", str(tmp_path), "x"]
    result = CliRunner().invoke(app, arguments, env={"BRAID_API_KEY": KEY})
    assert result.exit_code == 1
    assert "BRAID_TLS_AUTHORITY" in result.output
    assert KEY not in result.output
