"""The HTTP ops port."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from services.chassis.metrics import new_registry
from services.chassis.ops import OpsServer, Readiness
from services.chassis.server import PortInUse

HOST = "127.0.0.1"


class _State:
    readiness = Readiness(model_loaded=True, memory_ok=True, accepting=True)


@pytest.fixture
async def base() -> AsyncIterator[str]:
    server = OpsServer(HOST, 0, lambda: _State.readiness, new_registry("unit"))
    port = await server.start()
    yield f"http://{HOST}:{port}"
    await server.stop()


@pytest.mark.parametrize("missing", [None, "model_loaded", "memory_ok", "accepting"])
async def test_ready_needs_all_three_flags(
    base: str, missing: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """/ready is 200 with all flags and 503 naming the one that is false."""
    flags = {flag: flag != missing for flag in ("model_loaded", "memory_ok", "accepting")}
    monkeypatch.setattr(_State, "readiness", Readiness(**flags, reason="why"))
    async with aiohttp.ClientSession() as client, client.get(f"{base}/ready") as answer:
        assert answer.status == (200 if missing is None else 503)
        assert await answer.json() == {**flags, "reason": "why"}


async def test_live_and_metrics_answer(base: str) -> None:
    """/live is 200, and /metrics is a Prometheus exposition that names the service."""
    async with aiohttp.ClientSession() as client:
        async with client.get(f"{base}/live") as answer:
            assert answer.status == 200
        async with client.get(f"{base}/metrics") as answer:
            families = {f.name: f for f in text_string_to_metric_families(await answer.text())}
    assert families["braid_build_info"].samples[0].labels["service"] == "unit"


async def test_port_in_use_is_named(base: str) -> None:
    """A taken ops port is the same clear error as a taken gRPC port."""
    port = int(base.rsplit(":", 1)[1])
    with pytest.raises(PortInUse, match=str(port)):
        await OpsServer(HOST, port, lambda: _State.readiness, new_registry("unit")).start()
