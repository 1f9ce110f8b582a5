"""Prometheus and Grafana find the gateways, the rules, the dashboard and each other."""

import re
import shutil
from pathlib import Path

import yaml

from tests.unit.deploy.manifests import ROOT, object_of
from tests.unit.deploy.monitoring import (
    ALERTS,
    DASHBOARD,
    FOLDER,
    GRAFANA,
    needs_promtool,
    rules,
    run_promtool,
)


@needs_promtool
def test_prometheus_takes_the_configuration(tmp_path: Path) -> None:
    """Read as in the container, but for the place of the key."""
    (tmp_path / "metrics.key").touch()
    text = (FOLDER / "prometheus.yml").read_text()
    assert "credentials_file: /run/mini-vllm/metrics.key" in text
    shutil.copy(ALERTS, tmp_path)
    (tmp_path / "prometheus.yml").write_text(text.replace("/run/mini-vllm", str(tmp_path)))
    run_promtool("check", "config", tmp_path / "prometheus.yml")


def test_the_scraped_job_is_the_one_that_the_alerts_know() -> None:
    (job,) = yaml.safe_load((FOLDER / "prometheus.yml").read_text())["scrape_configs"]
    known = set(re.findall(r'job="([\w-]+)"', " ".join(rule["expr"] for rule in rules())))
    assert known == {job["job_name"]}
    service = object_of("Service", "gateway")["metadata"]["labels"]
    monitor = object_of("ServiceMonitor", "gateway")["spec"]
    assert service[monitor["jobLabel"]] == job["job_name"]
    assert monitor["selector"]["matchLabels"].items() <= service.items()


def test_the_service_monitor_scrapes_the_port_with_the_metrics_key() -> None:
    (endpoint,) = object_of("ServiceMonitor", "gateway")["spec"]["endpoints"]
    (port,) = object_of("Service", "gateway")["spec"]["ports"]
    assert endpoint["port"] == port["name"]
    key = endpoint["authorization"]["credentials"]
    assert key["key"] in object_of("Secret", key["name"])["stringData"]


def test_grafana_finds_the_source_and_the_dashboard() -> None:
    (source,) = yaml.safe_load(
        (GRAFANA / "provisioning" / "datasources/prometheus.yml").read_text()
    )["datasources"]
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    assert source["url"] == "http://prometheus:9090"
    assert compose["prometheus"]["ports"][0].endswith(":9090")
    interval = yaml.safe_load((FOLDER / "prometheus.yml").read_text())["global"]
    assert source["jsonData"]["timeInterval"] == interval["scrape_interval"]
    (provider,) = yaml.safe_load(
        (GRAFANA / "provisioning" / "dashboards/mini-vllm.yml").read_text()
    )["providers"]
    grafana = compose["grafana"]
    assert "./deploy/grafana:/etc/mini-vllm:ro" in grafana["volumes"]
    folder = Path(provider["options"]["path"])
    assert folder == Path("/etc/mini-vllm") / DASHBOARD.parent.relative_to(ROOT / "deploy/grafana")
    home = grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert home == str(folder / DASHBOARD.name)
