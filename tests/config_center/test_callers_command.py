"""`braid callers` against a config center that serves operators alone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from typer.testing import CliRunner, Result

from services.cli.app import app
from services.cli.etcd_process import EtcdProcess
from tests.config_center.test_config_center_process import config_center_process, ready
from tests.ports import free_port

OWN_KEY = "0" * 40


class Command:
    """`braid callers` with a key."""

    def __init__(self, address: str) -> None:
        self._address = address
        self.api_key = OWN_KEY

    def __call__(self, *arguments: str) -> Result:
        """Its exit code and output."""
        environ = {"BRAID_CONFIG_CENTER": self._address, "BRAID_API_KEY": self.api_key}
        return CliRunner().invoke(app, ["callers", *arguments], env=environ)

    def key(self, *arguments: str) -> str:
        """The key that a command prints, alone on its standard output."""
        result = self(*arguments)
        assert result.exit_code == 0, result.output
        return str(result.stdout.strip())


@pytest.fixture
def braid_callers(etcd: EtcdProcess) -> Iterator[Command]:
    port, ops_port = free_port(), free_port()
    security = {"BRAID_ACCESS": "callers", "BRAID_OPERATOR_KEY": OWN_KEY}
    with config_center_process(etcd.endpoint, port, ops_port, security):
        asyncio.run(ready(ops_port))
        yield Command(f"127.0.0.1:{port}")


def test_life_of_a_caller(braid_callers: Command) -> None:
    """Created, rotated, disabled, listed and deleted; only operators may, each by its own key."""
    braid_callers.api_key = braid_callers.key("create", "admin", "--operator")
    first = braid_callers.key("create", "editor", "--task", "math", "--concurrency", "3")
    second = braid_callers.key("rotate", "editor", "--overlap", "60")
    assert first != second
    assert braid_callers("create", "editor").exit_code == 1
    assert braid_callers("disable", "editor").exit_code == 0
    listed = braid_callers("list").stdout
    for shown in ("editor", "disabled", "tasks: math", "3 at once", "UTC", "operator"):
        assert shown in listed
    assert braid_callers("delete", "editor", "--yes").exit_code == 0
    assert "editor" not in braid_callers("list", "--json").stdout
    braid_callers.api_key = second
    refused = braid_callers("list")
    assert refused.exit_code == 1
    assert "UNAUTHENTICATED" in refused.stderr
