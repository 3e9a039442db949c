"""`braid batch`: outcomes line by line, and going on where it was broken off."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from braid.inference.v1 import inference_pb2 as pb
from services.chassis.security.audit import Audit
from services.chassis.security.callers import Callers
from services.cli.batch import EXIT_SOME_FAILED, answered
from services.router.guarded_door import GuardedDoor
from services.router.quota import Quotas
from tests.clock import Clock
from tests.fakes.worker import FakeWorker
from tests.router.proxies import Front, front


def write_items(file: Path, count: int) -> None:
    """So many items that ask for code."""
    request = {"task": "TASK_CODE_COMPLETION", "prompt": "x"}
    lines = [json.dumps({"item_id": f"i{n}", "request": request}) for n in range(count)]
    file.write_text("\n".join(lines) + "\n")


def read_results(file: Path) -> list[dict[str, Any]]:
    """The outcomes of a file."""
    lines = file.with_suffix(".results.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]


async def run(router: Front, file: Path) -> tuple[int, str]:
    """Exit code and output of the command."""
    command = [sys.executable, "-m", "services.cli", "batch", str(file), "--router", router.address]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    out, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode()


async def test_goes_on_where_it_was_broken_off(tmp_path: Path) -> None:
    """Items with an answer are not sent again; failed ones and a torn line are."""
    file, worker = tmp_path / "work.jsonl", FakeWorker()
    write_items(file, 6)
    results = file.with_suffix(".results.jsonl")
    kept = {"item_id": "i0", "response": {"text": "kept"}}
    failed = {"item_id": "i1", "error": {"code": 14}}
    results.write_text(f'{json.dumps(kept)}\n{json.dumps(failed)}\n{{"item_id": "i2", "resp')
    await worker.start()
    async with front(worker) as router:
        code, out = await run(router, file)
        assert (code, len(worker.received)) == (0, 5), out
        assert "5 answered, 0 failed, 1 were there" in out
        assert answered(results) == {f"i{n}" for n in range(6)}
        assert [one for one in read_results(file) if one["item_id"] == "i0"] == [kept]
        code, _ = await run(router, file)
        assert (code, len(worker.received)) == (0, 5)
    await worker.stop()


async def test_failed_items_show_in_the_exit_code(tmp_path: Path) -> None:
    """An item that is refused is written with its error, and the command says so."""
    file, worker = tmp_path / "work.jsonl", FakeWorker()
    file.write_text('{"item_id": "bad", "request": {"sampling": {"top_p": 7}, "prompt": "x"}}\n')
    await worker.start()
    async with front(worker) as router:
        code, _ = await run(router, file)
    await worker.stop()
    [outcome] = read_results(file)
    assert code == EXIT_SOME_FAILED
    assert outcome["error"]["code"] == 3
    assert answered(file.with_suffix(".results.jsonl")) == set()


async def test_a_line_that_is_no_item_is_named(tmp_path: Path) -> None:
    """The file and the number of a bad line end the command."""
    file = tmp_path / "work.jsonl"
    file.write_text('\n{"item": 1}\n')
    worker = FakeWorker()
    await worker.start()
    async with front(worker) as router:
        code, out = await run(router, file)
    await worker.stop()
    assert code == 1
    assert f"{file}:2" in out
    assert pb.GenerateBatchRequest.DESCRIPTOR.name in out


async def test_a_stranger_is_told_why(tmp_path: Path) -> None:
    """Without a key the command says so, whatever the number of items."""
    file, worker = tmp_path / "work.jsonl", FakeWorker()
    write_items(file, 50)
    await worker.start()
    door = GuardedDoor(Callers(), Quotas(Clock()), Audit(CollectorRegistry()))
    async with front(worker, door=door) as router:
        code, out = await run(router, file)
    await worker.stop()
    assert code == 1
    assert "UNAUTHENTICATED" in out
