"""docs/metrics.md, written from the code."""

from __future__ import annotations

from pathlib import Path

from deploy.observability.catalog import Described, catalog

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"

_HEAD = """# Metrics

What `/metrics` on the ops ports of the processes shows. Written by
`python -m deploy.observability`; a test compares it with the code. Times are in seconds, sizes in
bytes; label values come from closed sets, never from what a caller wrote. Histograms have
`_bucket`, `_sum` and `_count`. Beside these there are `process_*` and `python_info`.

| metric | type | labels | meaning | exported by |
|---|---|---|---|---|
"""


def page() -> str:
    """The whole page."""
    return _HEAD + "".join(_row(one) for one in catalog())


def _row(one: Described) -> str:
    name = one.name if one.kind == "histogram" else one.series[0]
    labels = ", ".join(f"`{label}`" for label in one.labels)
    cells = (f"`{name}`", one.kind, labels, one.meaning, ", ".join(one.exporters))
    return f"| {' | '.join(cells)} |\n"
