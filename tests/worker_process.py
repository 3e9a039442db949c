"""Worker processes as an operator starts them: from the environment, on free ports."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from google.protobuf import json_format

from braid.config.v1.config_pb2 import ModelVersion
from services.chassis.keys import model_key
from services.cli.etcd_process import EtcdProcess
from tests.etcd import etcdctl
from tests.eventually import eventually
from tests.ports import free_port

MODULES = {"diffusion": "services.diffusion_worker.main", "ar": "services.ar_worker.main"}
ROOT = Path(__file__).parent.parent
TTL_S = 3
START_S = 120.0
NODES = "/braid/nodes/"


def put_record(etcd: EtcdProcess, record: ModelVersion) -> None:
    """Stores a version's record as the config center does."""
    value = json_format.MessageToJson(record, preserving_proto_field_name=True)
    etcdctl(etcd, "put", model_key(record.model, record.version), value)


class WorkerProcess:
    """One worker; ``environment`` are BRAID_ variables without their prefix.

    ``launcher`` stands between Python and the worker's module, ``extra`` is a folder
    of packages that the other processes do without.
    """

    def __init__(
        self,
        kind: str,
        etcd_endpoint: str,
        folder: Path,
        *arguments: str,
        launcher: tuple[str, ...] = (),
        extra: Path | None = None,
        **environment: object,
    ) -> None:
        self._ports = free_port(), free_port(), free_port()
        self.log_path = folder / f"worker-{self._ports[0]}.log"
        settings: dict[str, object] = {
            "etcd": etcd_endpoint,
            "model": "tiny",
            "version": "v1",
            "cache_dir": folder / "cache",
            "port": self._ports[0],
            "admin_port": self._ports[1],
            "ops_port": self._ports[2],
            "lease_ttl_s": TTL_S,
            "slots": 4,
            "threads": 1,
        }
        variables = {
            f"BRAID_{name.upper()}": str(v) for name, v in (settings | environment).items()
        }
        with self.log_path.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, *launcher, "-m", MODULES[kind], *arguments],
                env=_environment(extra) | variables,
                cwd=ROOT,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    @property
    def address(self) -> str:
        """host:port of inference."""
        return f"127.0.0.1:{self._ports[0]}"

    @property
    def admin_address(self) -> str:
        """host:port of management."""
        return f"127.0.0.1:{self._ports[1]}"

    @property
    def output(self) -> str:
        """Everything it has printed."""
        return self.log_path.read_text(errors="replace")

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def events(self, name: str) -> list[dict[str, Any]]:
        """Its log lines of one event."""
        lines = [line for line in self.output.splitlines() if line.startswith("{")]
        return [event for event in map(json.loads, lines) if event.get("event") == name]

    def terminate(self) -> None:
        """Asks it to stop."""
        self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it as a crash would."""
        self._process.kill()
        self._process.wait()

    def readiness(self) -> tuple[int, dict[str, Any]]:
        """Status and body of /ready; (0, {}) while nobody listens."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        url = f"http://127.0.0.1:{self._ports[2]}/ready"
        try:
            with opener.open(url, timeout=5) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)
        except OSError:
            return 0, {}

    def is_ready(self) -> bool:
        """Whether all three flags are on; fails at once where the process has ended."""
        if self.exit_code is not None:
            raise RuntimeError(f"the worker ended with {self.exit_code}:\n{self.output}")
        return self.readiness()[0] == 200

    def metric(self, name: str) -> float:
        """A sample without labels on /metrics."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://127.0.0.1:{self._ports[2]}/metrics", timeout=5) as answer:
            lines = answer.read().decode().splitlines()
        [value] = [line.split()[1] for line in lines if line.split()[0] == name]
        return float(value)


class Started:
    """Starts workers and ends what is left of them."""

    def __init__(self, etcd: EtcdProcess, folder: Path) -> None:
        self.etcd = etcd
        self.folder = folder
        self._workers: list[WorkerProcess] = []

    def start(self, kind: str = "diffusion", **environment: Any) -> WorkerProcess:
        """A worker that starts now."""
        worker = WorkerProcess(kind, self.etcd.endpoint, self.folder, **environment)
        self._workers.append(worker)
        return worker

    async def registered(self, kind: str = "diffusion", **environment: object) -> WorkerProcess:
        """A worker that serves and is in the registry."""
        worker = self.start(kind, **environment)
        node_id = str(environment["node_id"])
        await eventually(worker.is_ready, START_S)
        await eventually(lambda: node_id in self.nodes())
        return worker

    def nodes(self) -> dict[str, dict[str, Any]]:
        """Registered records by node id."""
        lines = etcdctl(self.etcd, "get", "--prefix", "--print-value-only", NODES).splitlines()
        return {node["node_id"]: node for node in map(json.loads, filter(None, lines))}

    def close(self) -> None:
        """Ends every worker."""
        for worker in self._workers:
            worker.kill()


def _environment(extra: Path | None) -> dict[str, str]:
    """This process's, without proxies and other settings of a mesh."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("BRAID_") and not name.lower().endswith("_proxy")
    }
    folders = (ROOT, ROOT / "protos", *filter(None, (extra,)))
    path = os.pathsep.join(map(str, folders))
    return kept | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
