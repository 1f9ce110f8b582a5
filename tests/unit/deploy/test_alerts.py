"""Alert rules ask for metrics that there are, for one of the gateways' equal totals, and do as they say."""

import re
from pathlib import Path

import yaml

from tests.unit.deploy.manifests import object_of
from tests.unit.deploy.monitoring import (
    ALERTS,
    alerts,
    exported,
    names_in,
    needs_promtool,
    rules,
    run_promtool,
)

ALERT_TESTS = Path(__file__).parent / "alerts.test.yml"
#: By which the targets of one service differ.
_TARGET_LABELS = "instance, pod, endpoint, container, service, node"


def test_what_is_asked_for_is_there() -> None:
    asked = set().union(*(names_in(rule["expr"]) for rule in rules()))
    assert len(asked) > 10
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


@needs_promtool
def test_the_rules_do_as_their_tests_say() -> None:
    run_promtool("check", "rules", "--lint=all", "--lint-fatal", ALERTS)
    run_promtool("test", "rules", ALERT_TESTS)


def test_kubernetes_is_given_the_same_rules() -> None:
    rule = object_of("PrometheusRule", "mini-vllm")
    assert rule["spec"] == yaml.safe_load(ALERTS.read_text())
