"""Names of metrics, and the page that lists them."""

from __future__ import annotations

import re

import pytest
import yaml

from deploy.observability.catalog import Described, catalog
from deploy.observability.page import PAGE, page
from tests.deploy.manifests import KUBERNETES

CATALOG = catalog()
SCALED = (KUBERNETES / "components/keda/scaled-objects.yaml").read_text()
each_metric = pytest.mark.parametrize("metric", CATALOG, ids=lambda it: it.name)


def test_page_is_what_the_code_says() -> None:
    """The page lists what is exported: write it anew by ``python -m deploy.observability``."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_service_is_listed() -> None:
    """Each kind of process has metrics of its own on the page."""
    alone = {one.exporters[0] for one in CATALOG if len(one.exporters) == 1}
    assert alone == {"router", "worker", "config center"}


@each_metric
def test_names_follow_one_scheme(metric: Described) -> None:
    """Prefix, snake case, base units, and a meaning that is a sentence."""
    assert re.fullmatch(r"braid(_[a-z0-9]+)+", metric.name)
    assert not re.search(r"(_ms|_millis|_minutes|_percent|_kb|_mb|_total)\b", metric.name)
    assert metric.meaning.endswith(".")


@each_metric
def test_labels_come_from_closed_sets(metric: Described) -> None:
    """Nothing that a caller writes, and nothing that grows with calls, is a label."""
    assert not {"request_id", "caller", "prompt", "session", "peer", "key"} & set(metric.labels)


@pytest.mark.parametrize(
    "query",
    [
        trigger["metadata"]["query"]
        for one in yaml.safe_load_all(SCALED)
        for trigger in one["spec"]["triggers"]
    ],
)
def test_scalers_follow_metrics_that_exist(query: str) -> None:
    """An autoscaler's query names a series and labels that routers export."""
    found = re.fullmatch(r"(?:max|sum)\((\w+)\{(\w+)=\"\w+\"\}\)", query)
    assert found
    [metric] = [one for one in CATALOG if found[1] in one.series]
    assert found[2] in metric.labels
