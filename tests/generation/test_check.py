"""``--check``: a start as far as the first request, for whoever tries an image or a machine."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import s3fs

from services.ar_worker.kind import KIND as AR
from services.chassis.process import Stop
from services.cli.etcd_process import EtcdProcess
from services.diffusion_worker.kind import KIND as DIFFUSION
from services.generation.check import check_worker
from services.generation.kind import Kind
from services.generation.settings import WorkerSettings
from tests.checkpoints import record_of
from tests.etcd import etcdctl, new_etcd
from tests.eventually import eventually
from tests.generation.weights.moto_server import s3_server
from tests.worker_process import MODULES, ROOT, WorkerProcess, put_record

pytestmark = pytest.mark.timeout(300)

END_S = 240.0


@pytest.fixture(scope="module")
def etcd(
    tmp_path_factory: pytest.TempPathFactory, diffusion_checkpoint: Path, ar_checkpoint: Path
) -> Iterator[EtcdProcess]:
    """An etcd with the records of the tiny models."""
    process = new_etcd(tmp_path_factory.mktemp("etcd"))
    process.start()
    put_record(process, record_of(diffusion_checkpoint, "tiny-diffusion"))
    put_record(process, record_of(ar_checkpoint, "tiny-autoregressive"))
    yield process
    process.kill()


def settings(running: EtcdProcess, folder: Path, kind: Kind, **values: object) -> WorkerSettings:
    """Of a worker of a tiny model."""
    given = {"model": f"tiny-{kind.paradigm.value}", "version": "v1", "cache_dir": folder}
    return WorkerSettings.model_validate(
        given | {"group": "g", "etcd": running.endpoint, "slots": 4, "threads": 1} | values
    )


@pytest.mark.parametrize("kind", [AR, DIFFUSION], ids=["ar", "diffusion"])
async def test_check_prints_what_it_found(
    kind: Kind, etcd: EtcdProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A sound start is told with settings, versions, device, files, plan and warm-up."""
    wanted = settings(etcd, tmp_path, kind)
    sources = dict.fromkeys(type(wanted).model_fields, "default") | {"slots": "BRAID_SLOTS"}
    await check_worker(wanted, sources, Stop(), kind)
    lines = capsys.readouterr().out.splitlines()
    for title in ("settings", "versions", "device", "files", "memory plan", "model"):
        assert f"{title}:" in lines
    told = {line.split()[0]: line.split(maxsplit=1)[1] for line in lines if line.startswith("  ")}
    assert (told["threads"], told["slots"]) == ("1", "4")
    assert "  slots                    4  (BRAID_SLOTS)" in lines
    assert "  dtype                    auto  (default)" in lines
    assert told["weights_bytes"].endswith("KiB")
    assert "sha256" in told["model.safetensors"]
    assert lines[-1] == "check passed"
    assert etcdctl(etcd, "get", "--prefix", "/braid/nodes/") == ""


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"memory_limit_bytes": 2**20}, "no number of slots and no context would fit"),
        ({"version": "v2"}, "v2 is not recorded"),
        ({"etcd": "127.0.0.1:1"}, "etcd"),
    ],
)
async def test_check_fails_where_a_start_would(
    values: dict[str, object], told: str, etcd: EtcdProcess, tmp_path: Path
) -> None:
    """What keeps a worker from starting ends the check; so does an etcd that is down."""
    with pytest.raises(BaseExceptionGroup) as caught:
        await check_worker(settings(etcd, tmp_path, AR, **values), {}, Stop(), AR)
    assert told in str(caught.value.exceptions[0])


async def test_version_in_s3_is_loaded_like_any(
    etcd: EtcdProcess,
    ar_checkpoint: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A whole start from a bucket: record, files, weights, warm-up."""
    with s3_server() as url:
        for name, value in {
            "AWS_ENDPOINT_URL": url,
            "AWS_ACCESS_KEY_ID": "id",
            "AWS_SECRET_ACCESS_KEY": "secret",
        }.items():
            monkeypatch.setenv(name, value)
        bucket = s3fs.S3FileSystem(skip_instance_cache=True)
        bucket.mkdir("models")
        bucket.put(f"{ar_checkpoint}/", "models/tiny/v3/", recursive=True)
        record = record_of(ar_checkpoint, "tiny-autoregressive", "v3")
        record.uri = "s3://models/tiny/v3"
        put_record(etcd, record)
        wanted = settings(etcd, tmp_path, AR, version="v3")
        await check_worker(wanted, {}, Stop(), AR)
    lines = capsys.readouterr().out.splitlines()
    assert "  uri                      s3://models/tiny/v3" in lines
    assert lines[-1] == "check passed"


async def test_check_as_a_process(etcd: EtcdProcess, tmp_path: Path) -> None:
    """Its exit code says how it went, and it never serves."""
    worker = WorkerProcess("ar", etcd.endpoint, tmp_path, "--check", model="tiny-autoregressive")
    await eventually(lambda: worker.exit_code is not None, END_S)
    assert worker.exit_code == 0, worker.output
    assert worker.output.splitlines()[-1] == "check passed"
    assert "READY" not in [event["state"] for event in worker.events("node_state")]


@pytest.mark.parametrize("kind", MODULES)
def test_help_does_not_wait_for_torch(kind: str) -> None:
    """Help and a wrong setting are answered without loading what computes."""
    program = f"import sys, {MODULES[kind]}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0
