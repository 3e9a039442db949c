"""Every process has one HTTP port for probes and scrapes."""

from __future__ import annotations

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.running_mesh import RunningMesh

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize("part", ["router", "config-center", "diffusion-1", "ar-1"])
async def test_probes_and_metrics(mesh: RunningMesh, part: str) -> None:
    """/live and /ready say yes, /ready with its three flags, and /metrics parses."""
    base = f"http://{ops_address(mesh, part)}"
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{base}/live") as live:
            assert live.status == 200
        async with session.get(f"{base}/ready") as ready:
            assert ready.status == 200
            flags = await ready.json()
        async with session.get(f"{base}/metrics") as metrics:
            families = list(text_string_to_metric_families(await metrics.text()))
    assert flags["model_loaded"]
    assert flags["memory_ok"]
    assert flags["accepting"]
    assert any(family.name.startswith("braid_") for family in families)


def ops_address(mesh: RunningMesh, part: str) -> str:
    if part == "router":
        return mesh.record.router_ops
    if part == "config-center":
        return mesh.mesh.plan.config_center_ops
    return next(node.ops for node in mesh.record.nodes if node.node_id == part)
