"""Alerts name what exists, are tested, and say what to do."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.observability.catalog import catalog
from tests.deploy.manifests import DEPLOY

RULES = DEPLOY / "prometheus" / "rules.yaml"
CASES = DEPLOY / "prometheus" / "rules_test.yaml"
RUNBOOK = Path(__file__).parents[2] / "docs" / "runbook.md"
ALERTS: list[dict[str, Any]] = [
    rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]
]
SERIES = {series: one for one in catalog() for series in one.series}
ADDED = {"job", "instance", "le"}
"""Labels that Prometheus and histograms bring."""

each_alert = pytest.mark.parametrize("alert", ALERTS, ids=lambda it: it["alert"])


@each_alert
def test_alerts_ask_for_what_is_exported(alert: dict[str, Any]) -> None:
    """Each series of an alert exists, and so does each label that it selects or groups by."""
    names = set(re.findall(r"\bbraid_\w+", alert["expr"]))
    assert names
    assert names <= SERIES.keys()
    known = {label for name in names for label in SERIES[name].labels} | ADDED
    grouped = re.findall(r"by \(([^)]*)\)", alert["expr"])
    selected = re.findall(r"(\w+)=~?\"", alert["expr"])
    assert {label.strip() for part in grouped for label in part.split(",")} <= known
    assert set(selected) <= known


@each_alert
def test_alerts_say_what_to_do(alert: dict[str, Any]) -> None:
    """The link of an alert leads to its section of the runbook."""
    page, _, anchor = alert["annotations"]["runbook"].partition("#")
    sections = re.findall(r"^## (\w+)$", RUNBOOK.read_text(), re.MULTILINE)
    assert page == "docs/runbook.md"
    assert anchor in {section.lower() for section in sections}
    assert alert["labels"]["severity"] in {"page", "ticket"}


def test_every_alert_has_a_case() -> None:
    """promtool's tests see each alert both silent and firing."""
    cases = yaml.safe_load(CASES.read_text())["tests"]
    checks = [check for case in cases for check in case["alert_rule_test"]]
    seen = {(check["alertname"], bool(check["exp_alerts"])) for check in checks}
    assert seen == {(alert["alert"], fires) for alert in ALERTS for fires in (True, False)}


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed")
def test_alerts_fire_when_they_should() -> None:
    """promtool finds every alert silent before its fault and firing in it."""
    command = ["promtool", "test", "rules", CASES.name]
    run = subprocess.run(command, cwd=CASES.parent, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
