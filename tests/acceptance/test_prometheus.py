"""A real Prometheus scrapes a real pool: what it knows is what clients were told."""

import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.acceptance.test_service import run
from tests.service import Up, wait_until

PROMETHEUS = shutil.which("prometheus")
pytestmark = pytest.mark.skipif(PROMETHEUS is None, reason="needs Prometheus (Debian: prometheus)")

CONFIG = """
scrape_configs:
  - job_name: mini-vllm
    scrape_interval: 1s
    scrape_timeout: 1s
    static_configs: [{{targets: ["{target}"]}}]
"""


@pytest.fixture
def prometheus(service: Up, tmp_path: Path) -> Iterator[httpx.Client]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    config = tmp_path / "prometheus.yml"
    config.write_text(CONFIG.format(target=service.url.removeprefix("http://")))
    assert PROMETHEUS
    command = [PROMETHEUS, f"--config.file={config}", f"--web.listen-address={address}"]
    process = subprocess.Popen(
        [*command, f"--storage.tsdb.path={tmp_path / 'data'}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        with httpx.Client(base_url=f"http://{address}", timeout=10) as client:
            yield client
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)


def query(prometheus: httpx.Client, expression: str) -> float | None:
    """Of one series; ``None`` while there is none, or nobody answers yet."""
    try:
        body: dict[str, Any] = prometheus.get("/api/v1/query", params={"query": expression}).json()
    except httpx.TransportError:
        return None
    rows = body["data"]["result"] if body["status"] == "success" else []
    return float(rows[0]["value"][1]) if rows else None


def test_what_it_scrapes_is_what_clients_were_told(
    service: Up, client: httpx.Client, prometheus: httpx.Client
) -> None:
    before = client.get("/metrics").json()
    jobs = [run(client, prompt="Tell of the sea", max_tokens=8 + i, seed=i) for i in range(3)]
    tokens = before["total_tokens_generated"] + sum(j["usage"]["completion_tokens"] for j in jobs)
    ended = before["latencies"]["ttft"]["count"] + len(jobs)
    spent_s = before["latencies"]["e2e"]["avg_s"] or 0.0
    spent_s = spent_s * before["latencies"]["e2e"]["count"]
    spent_s += sum(job["timings"]["total_s"] for job in jobs)

    found = wait_until(
        lambda: query(prometheus, "sum(mini_vllm_generation_tokens_total)") == tokens,
        60,
        "Prometheus has scraped every token",
    )
    assert found
    assert query(prometheus, "sum(mini_vllm_time_to_first_token_seconds_count)") == ended
    e2e = "sum(mini_vllm_e2e_request_latency_seconds_sum)"
    assert query(prometheus, e2e) == pytest.approx(spent_s, abs=0.05 * ended)
    assert query(prometheus, 'mini_vllm_workers{state="ready"}') == 2
    assert query(prometheus, 'up{job="mini-vllm"}') == 1
    # Workers tell of what lies between tokens with their next heartbeat.
    gaps = sum(job["usage"]["completion_tokens"] - 1 for job in jobs)
    assert wait_until(
        lambda: (
            (query(prometheus, "sum(mini_vllm_inter_token_latency_seconds_count)") or 0) >= gaps
        ),
        60,
        "and every gap between tokens",
    )
    steps = query(prometheus, "sum(mini_vllm_step_time_seconds_count)")
    assert steps and steps >= gaps, "one client at a time: each token is a step of its own"
