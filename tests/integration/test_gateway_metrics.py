"""Counters that never go back, whoever dies."""

from typing import Any

import httpx
from redis import Redis

from shared.keys import beat_key
from shared.recovery import Sweeper
from tests.gateway import PlayedWorker

COUNTERS = ("total_requests", "avg_latency_sec", "tokens_per_sec_avg", "total_tokens_generated")


def submit(http: httpx.Client) -> str:
    return str(http.post("/generate", json={"prompt": "x"}).json()["job_id"])


def metrics(http: httpx.Client) -> dict[str, Any]:
    response = http.get("/metrics")
    assert response.status_code == 200
    body: dict[str, Any] = response.json()
    return body


def test_metrics_of_a_new_service_are_zero(http: httpx.Client) -> None:
    body = metrics(http)
    assert [body[name] for name in COUNTERS] == [0, 0, 0, 0]
    assert body["memory_mb"] > 10
    assert body["workers"] == []


def test_totals_are_the_same_before_and_after_a_worker_is_buried(
    http: httpx.Client, worker: PlayedWorker, flushed: Redis
) -> None:
    for _ in range(3):
        submit(http)
    worker.play("a", "b")
    held = worker.take()
    worker.token(held, 0, "c")
    http.delete(f"/jobs/{submit(http)}")
    before = metrics(http)
    assert before["total_requests"] == 2
    assert before["total_tokens_generated"] == 3
    assert before["prompt_tokens_total"] == 3
    assert before["tokens_per_sec_avg"] == 2.0
    jobs = {"queued": 1, "running": 1, "completed": 1, "failed": 0, "cancelled": 1}
    assert before["jobs"] == jobs
    assert before["queue"] == {"high": 0, "normal": 1, "low": 0, "suspect": 0, "depth": 1}
    assert before["workers"][0]["totals"]["generated_tokens"] == 3
    assert before["memory_mb"] > 100
    assert before["cpu_percent"] >= 50

    sweeper = Sweeper(heartbeat_ttl_s=1, max_deaths=3, result_ttl_s=60)
    assert sweeper.bury(flushed, "worker-0", only_if_lapsed=False) == [held]
    after = metrics(http)
    assert {name: after[name] for name in COUNTERS} == {name: before[name] for name in COUNTERS}
    assert after["prompt_tokens_total"] == 3
    assert after["jobs"] == jobs | {"queued": 2, "running": 0}
    assert after["workers"] == []


def test_workers_are_shown_by_name_with_the_age_of_their_beat(
    http: httpx.Client, worker: PlayedWorker, flushed: Redis
) -> None:
    PlayedWorker(flushed, "worker-1", "smollm2")
    submit(http)
    worker.take()
    flushed.delete(beat_key("worker-1"))
    workers = http.get("/workers").json()["workers"]
    assert [(w["name"], w["state"]) for w in workers] == [
        ("worker-0", "ready"),
        ("worker-1", "lost"),
    ]
    assert workers[0]["last_beat_s"] >= 0
    assert workers[0]["jobs_held"] == 1
    assert workers[0]["slots"] == 8
