"""What a gateway exports, and what alert rules and dashboard ask of it. Knows no rule that they should keep."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.core import Metric

from api.fleet import make_fleet
from api.metrics_view import metrics_of
from api.prometheus.counters import counters_of, histograms_of
from api.prometheus.gauges import gauges_of
from tests.unit.deploy.manifests import ROOT

FOLDER = ROOT / "deploy/monitoring"
ALERTS = FOLDER / "alerts.yml"
GRAFANA = ROOT / "deploy/grafana"
DASHBOARD = GRAFANA / "dashboards/mini-vllm.json"

_SUFFIXES = {
    "counter": ("_total",),
    "gauge": ("",),
    "histogram": ("_bucket", "_sum", "_count"),
}

needs_promtool = pytest.mark.skipif(
    not shutil.which("promtool"), reason="needs promtool (Debian's package prometheus)"
)


def _families() -> Iterator[Metric]:
    fleet = make_fleet([], [(0, 0), [], {}, 0, 0, 0, 0])
    metrics = metrics_of(fleet, gateway_memory_mb=0, gateway_cpu_percent=0)
    gauges = gauges_of(fleet, metrics, num_failed_starts=0, max_queued_jobs=1)
    return chain(gauges, counters_of(fleet), histograms_of(fleet))


@cache
def exported() -> frozenset[str]:
    """Names of the series that a gateway has."""
    return frozenset(f.name + suffix for f in _families() for suffix in _SUFFIXES[f.type])


@cache
def rules() -> tuple[dict[str, Any], ...]:
    (group,) = yaml.safe_load(ALERTS.read_text())["groups"]
    return tuple(group["rules"])


def alerts() -> list[dict[str, Any]]:
    return [rule for rule in rules() if "alert" in rule]


@cache
def dashboard() -> dict[str, Any]:
    return dict(json.loads(DASHBOARD.read_text()))


def panels() -> list[dict[str, Any]]:
    """Those in collapsed rows too."""
    return [p for outer in dashboard()["panels"] for p in (outer, *outer.get("panels", []))]


def queries() -> list[str]:
    return [target["expr"] for panel in panels() for target in panel.get("targets", [])]


def names_in(expression: str) -> set[str]:
    return set(re.findall(r"\bmini_vllm_\w+", expression))


def run_promtool(*words: str | Path) -> None:
    done = subprocess.run(["promtool", *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
