"""Alert rules and dashboard ask for metrics that there are, and for one of the gateways' equal totals."""

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
from tests.unit.deploy.manifests import ROOT, object_of

MONITORING = ROOT / "deploy/monitoring"
ALERTS = MONITORING / "alerts.yml"
ALERT_TESTS = Path(__file__).parent / "alerts.test.yml"
DASHBOARD = ROOT / "deploy/grafana/dashboards/mini-vllm.json"
PROVISIONING = ROOT / "deploy/grafana/provisioning"

_SUFFIXES = {
    "counter": ("_total",),
    "gauge": ("",),
    "histogram": ("_bucket", "_sum", "_count"),
}
#: By which the targets of one service differ.
_TARGET_LABELS = "instance, pod, endpoint, container, service, node"

promtool = pytest.mark.skipif(
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


def test_what_is_asked_for_is_there() -> None:
    asked = set().union(*map(names_in, (*queries(), *(rule["expr"] for rule in rules()))))
    for variable in dashboard()["templating"]["list"]:
        asked |= names_in(variable.get("definition", ""))
    assert len(asked) > 30
    assert asked - exported() == set()


def test_what_is_recorded_is_used_and_what_is_used_is_recorded() -> None:
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    used = set(re.findall(r"\bmini_vllm:[\w:]+", " ".join(rule["expr"] for rule in rules())))
    assert used == recorded


def test_no_rule_sums_what_every_gateway_tells() -> None:
    """Each metric of ours stands within a maximum over the gateways, or the minimum of limits."""
    most = f"(max|min) without \\({re.escape(_TARGET_LABELS)}\\) \\(\\s*"
    selector = r"(\{[^}]*\})?(\[\w+\])?"
    for rule in rules():
        found = re.findall(r"\bmini_vllm_\w+", rule["expr"])
        one = re.findall(rf"{most}(\w+\(\s*)?mini_vllm_\w+{selector}\s*\)", rule["expr"])
        assert len(one) == len(found), rule["expr"]


def test_no_panel_sums_what_every_gateway_tells() -> None:
    most = r"(max|min)( by \([\w, ]+\) )?\("
    for query in queries():
        found = re.findall(r"\bmini_vllm_\w+", query)
        one = re.findall(rf"{most}(\w+\()?mini_vllm_\w+\{{", query)
        assert len(one) == len(found), query


def test_every_alert_says_what_is_so_and_what_to_do() -> None:
    names = [alert["alert"] for alert in alerts()]
    assert len(names) == len(set(names)) >= 8
    for alert in alerts():
        assert alert["labels"]["severity"] in ("critical", "warning")
        assert set(alert["annotations"]) == {"summary", "description"}
        assert 100 < len(alert["annotations"]["description"]) < 700, alert["alert"]


def test_every_alert_is_seen_to_fire_and_all_to_be_silent() -> None:
    tests = yaml.safe_load(ALERT_TESTS.read_text())["tests"]
    told = [asked for test in tests for asked in test["promql_expr_test"]]
    fired = " ".join(str(asked["exp_samples"]) for asked in told)
    assert [a["alert"] for a in alerts() if f'alertname="{a["alert"]}"' not in fired] == []
    given = {name for series in tests[0]["input_series"] for name in names_in(series["series"])}
    needed = set().union(*(names_in(rule["expr"]) for rule in rules()))
    assert needed - given == set(), "the busy service is silent for want of a metric"
    assert {"expr": "ALERTS", "eval_time": "50m", "exp_samples": []} in told


@promtool
def test_the_rules_do_as_their_tests_say() -> None:
    run_promtool("check", "rules", "--lint=all", "--lint-fatal", ALERTS)
    run_promtool("test", "rules", ALERT_TESTS)


@promtool
def test_prometheus_takes_the_configuration(tmp_path: Path) -> None:
    """Read as in the container, but for the place of the key."""
    (tmp_path / "metrics.key").touch()
    text = (MONITORING / "prometheus.yml").read_text()
    assert "credentials_file: /run/mini-vllm/metrics.key" in text
    shutil.copy(ALERTS, tmp_path)
    (tmp_path / "prometheus.yml").write_text(text.replace("/run/mini-vllm", str(tmp_path)))
    run_promtool("check", "config", tmp_path / "prometheus.yml")


@promtool
def test_every_query_of_the_dashboard_can_be_read(tmp_path: Path) -> None:
    values = {"$__rate_interval": "1m", "$job": "mini-vllm", "$model_name": ".*"}
    exprs = queries()
    for variable, value in values.items():
        exprs = [expr.replace(variable, value) for expr in exprs]
    assert not [expr for expr in exprs if "$" in expr]
    made = [{"record": f"panel_{i}", "expr": expr} for i, expr in enumerate(exprs)]
    path = tmp_path / "queries.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": made}]}))
    run_promtool("check", "rules", path)


def test_the_scraped_job_is_the_one_that_the_alerts_know() -> None:
    (job,) = yaml.safe_load((MONITORING / "prometheus.yml").read_text())["scrape_configs"]
    known = set(re.findall(r'job="([\w-]+)"', " ".join(rule["expr"] for rule in rules())))
    assert known == {job["job_name"]}
    service = object_of("Service", "gateway")["metadata"]["labels"]
    monitor = object_of("ServiceMonitor", "gateway")["spec"]
    assert service[monitor["jobLabel"]] == job["job_name"]
    assert monitor["selector"]["matchLabels"].items() <= service.items()


def test_kubernetes_is_given_the_same_rules() -> None:
    rule = object_of("PrometheusRule", "mini-vllm")
    assert rule["spec"] == yaml.safe_load(ALERTS.read_text())


def test_the_service_monitor_scrapes_the_port_with_the_metrics_key() -> None:
    (endpoint,) = object_of("ServiceMonitor", "gateway")["spec"]["endpoints"]
    (port,) = object_of("Service", "gateway")["spec"]["ports"]
    assert endpoint["port"] == port["name"]
    key = endpoint["authorization"]["credentials"]
    assert key["key"] in object_of("Secret", key["name"])["stringData"]


def test_the_rows_are_the_questions_of_who_is_on_call() -> None:
    rows = [panel["title"] for panel in dashboard()["panels"] if panel["type"] == "row"]
    assert rows[:3] == ["Are users waiting?", "Why?", "What to do"]
    assert [variable["name"] for variable in dashboard()["templating"]["list"]] == [
        *("datasource", "job", "model_name"),
    ]


def test_panels_have_an_id_each_and_do_not_overlap() -> None:
    ids = [panel["id"] for panel in panels()]
    assert len(ids) == len(set(ids)) > 30
    taken: dict[tuple[int, int], str] = {}
    for panel in panels():
        place = panel["gridPos"]
        assert place["w"] > 0
        assert place["h"] > 0
        assert place["x"] + place["w"] <= 24, panel["title"]
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert (x, y) not in taken, (panel["title"], taken[x, y])
                taken[x, y] = panel["title"]


def test_panels_stand_in_the_order_in_which_grafana_fills_rows() -> None:
    """A panel belongs to the row before it: to the one above it, then."""
    heights = [panel["gridPos"]["y"] for panel in dashboard()["panels"]]
    assert heights == sorted(heights)
    for row in (panel for panel in panels() if panel["type"] == "row"):
        assert bool(row["panels"]) == row["collapsed"], "open rows have their panels beside them"


def test_every_panel_asks_the_source_that_was_chosen_and_tells_how_to_read_it() -> None:
    chosen = {"type": "prometheus", "uid": "${datasource}"}
    for panel in panels():
        if panel["type"] in ("row", "text"):
            continue
        assert panel["datasource"] == chosen, panel["title"]
        assert {t["refId"] for t in panel["targets"]} == set("ABCD"[: len(panel["targets"])])
        assert all(target["datasource"] == chosen for target in panel["targets"])
        if panel["type"] != "table":
            assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert panel["description"], panel["title"]


def test_grafana_finds_the_source_and_the_dashboard(request: pytest.FixtureRequest) -> None:
    del request
    (source,) = yaml.safe_load((PROVISIONING / "datasources/prometheus.yml").read_text())[
        "datasources"
    ]
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    assert source["url"] == "http://prometheus:9090"
    assert compose["prometheus"]["ports"][0].endswith(":9090")
    interval = yaml.safe_load((MONITORING / "prometheus.yml").read_text())["global"]
    assert source["jsonData"]["timeInterval"] == interval["scrape_interval"]
    (provider,) = yaml.safe_load((PROVISIONING / "dashboards/mini-vllm.yml").read_text())[
        "providers"
    ]
    grafana = compose["grafana"]
    assert "./deploy/grafana:/etc/mini-vllm:ro" in grafana["volumes"]
    folder = Path(provider["options"]["path"])
    assert folder == Path("/etc/mini-vllm") / DASHBOARD.parent.relative_to(ROOT / "deploy/grafana")
    home = grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert home == str(folder / DASHBOARD.name)
