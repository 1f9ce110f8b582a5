"""Latencies and ends, counted once each, whoever counts them and whoever dies."""

from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families
from redis import Redis

from shared.histograms import bucket_field
from shared.keys import SERVED, worker_totals_key
from shared.recovery import Sweeper
from shared.scripts import run_script
from tests.gateway import PlayedWorker, RunningGateway
from tests.integration.test_gateway_metrics import metrics, submit

PREFIX = "mini_vllm_"


def scrape(http: httpx.Client) -> dict[tuple[str, str], float]:
    """By name and the last of its labels' values."""
    response = http.get("/metrics", headers={"Accept": "text/plain"})
    assert response.status_code == 200
    found: dict[tuple[str, str], float] = {}
    for family in text_string_to_metric_families(response.text):
        for sample in family.samples:
            if "le" not in sample.labels:
                last = next(reversed(sample.labels.values()), "")
                found[sample.name.removeprefix(PREFIX), last] = sample.value
    return found


def counts(body: dict[str, Any]) -> dict[str, int]:
    return {name: latency["count"] for name, latency in body["latencies"].items()}


def test_each_latency_is_observed_once_per_job(http: httpx.Client, worker: PlayedWorker) -> None:
    for _ in range(2):
        submit(http)
    worker.play("a", "b")
    assert counts(metrics(http)) == {
        "ttft": 1, "itl": 0, "e2e": 1, "queue": 1, "prefill": 0, "decode": 0, "step": 0,
    }  # fmt: skip
    held = worker.take()
    worker.token(held, 0, "c")
    assert counts(metrics(http))["ttft"] == 2, "seen when it happens, not at the end"
    assert counts(metrics(http))["queue"] == 2
    worker.end(held, 1)
    worker.end(held, 1)
    assert counts(metrics(http))["e2e"] == 2
    assert metrics(http)["finish_reasons"] == {"stop": 2}


def test_a_job_that_ends_without_a_worker_counts_too(
    http: httpx.Client, worker: PlayedWorker
) -> None:
    http.delete(f"/jobs/{submit(http)}")
    body = metrics(http)
    assert body["finish_reasons"] == {"cancelled": 1}
    assert counts(body)["e2e"] == 1
    assert counts(body)["queue"] == 0


def test_a_death_takes_nothing_back(
    http: httpx.Client, worker: PlayedWorker, flushed: Redis
) -> None:
    submit(http)
    worker.play("a", "b")
    submit(http)
    held = worker.take()
    worker.token(held, 0, "c")
    run_script(
        flushed, "beat", "worker-0", 9000, "{}", "smollm2", bucket_field("smollm2", "itl", 2), 5
    )
    before = scrape(http)
    assert before["inter_token_latency_seconds_count", "smollm2"] == 5
    sweeper = Sweeper(heartbeat_ttl_s=1, max_deaths=3, result_ttl_s=60)
    assert sweeper.bury(flushed, "worker-0", only_if_lapsed=False) == [held]
    assert not flushed.exists(worker_totals_key("worker-0"))
    after = scrape(http)
    grown = {
        key
        for key in before
        if key[0].endswith(("_total", "_count", "_sum")) and after[key] != before[key]
    }
    assert grown == {("worker_deaths_total", ""), ("recovered_jobs_total", "")}
    assert (after["worker_deaths_total", ""], after["recovered_jobs_total", ""]) == (1, 1)

    again = PlayedWorker(flushed, "worker-1", "smollm2")
    again.take()
    again.token(held, 1, "d", attempt=2)
    assert counts(metrics(http))["ttft"] == 2, "its first token came before the death"
    assert counts(metrics(http))["queue"] == 2


def test_what_is_refused_is_counted_by_why(valkey_url: str, flushed: Redis) -> None:
    running = RunningGateway(valkey_url, model="smollm2", max_queued_jobs=1).start()
    try:
        with running.client() as http:
            PlayedWorker(flushed, "worker-0", "smollm2")
            submit(http)
            assert http.post("/generate", json={"prompt": "x"}).status_code == 429
            flushed.hset(SERVED, "smollm2", 1)  # when a worker was last there: long ago
            assert http.post("/generate", json={"prompt": "x"}).status_code == 503
            assert metrics(http)["refused"] == {"no_worker_ready": 1, "queue_full": 1}
    finally:
        running.stop()


def test_the_text_is_at_its_own_path_too_and_json_is_what_others_get(http: httpx.Client) -> None:
    assert (
        http.get("/metrics/prometheus")
        .headers["content-type"]
        .startswith("text/plain; version=0.0.4")
    )
    asked = {"Accept": "application/openmetrics-text;version=1.0.0"}
    assert http.get("/metrics", headers=asked).text.endswith("# EOF\n")
    assert http.get("/metrics", headers={"Accept": "*/*"}).json()["total_requests"] == 0
