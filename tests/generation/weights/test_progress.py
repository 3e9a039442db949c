"""How far a fetch is, told now and again."""

from __future__ import annotations

import structlog

from services.generation.weights.progress import EVERY_S, FetchProgress


def test_progress_is_told_every_few_seconds() -> None:
    """However many ranges come, the log has a line each EVERY_S, with bytes and rate."""
    now, told = [0.0], list[str]()
    with (
        structlog.testing.capture_logs() as logs,
        FetchProgress("tiny v1", 1_000_000, told.append, lambda: now[0]) as progress,
    ):
        for _ in range(100):
            now[0] += EVERY_S / 10
            progress.arrived(10_000)
    lines = [line for line in logs if line["event"] == "weights_progress"]
    assert len(lines) == len(told) == 10
    assert (lines[4]["fetched_bytes"], lines[4]["total_bytes"]) == (500_000, 1_000_000)
    assert lines[4]["bytes_per_second"] == 500_000 / (5 * EVERY_S)
    assert told[4] == "fetched 500.0 kB of 1.0 MB"
    assert [logs[0]["event"], logs[-1]["event"]] == ["weights_fetching", "weights_fetched"]
