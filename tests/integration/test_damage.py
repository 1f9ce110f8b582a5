"""What is damaged in Redis is left out; what is whole is still told, and looked after."""

from typing import Any

import httpx
import pytest
from redis import Redis

from shared.keys import (
    DEADLINES,
    JOBS,
    OPEN,
    OWNERS,
    SERVICE_TOTALS,
    WORKERS,
    beat_key,
    job_key,
    stream_key,
    worker_key,
    worker_totals_key,
)
from shared.protocol import JobStatus
from tests.gateway import PlayedWorker, RunningGateway
from tests.links import (
    MODEL,
    finish,
    make_broker,
    make_link,
    pop,
    record,
    serve,
    submit,
    transcript,
)
from tests.servers import wait_for

PATHS = ("/jobs", "/metrics", "/workers", "/ready")


def post(http: httpx.Client) -> str:
    return str(http.post("/generate", json={"prompt": "x"}).json()["job_id"])


@pytest.mark.parametrize(
    "damage",
    [
        {"end": "{"},
        {"status": "odd"},
        {"created_ms": "x"},
        {"created_ms": "9" * 15},
        {"queue": "x"},
        {"seed": "-1"},
        {"attempt": "1e9"},
        {"worker": b"\xff"},
        {"owner": b"\xff"},
        {"deadline_ms": "nan"},
    ],
)
def test_a_damaged_record_does_not_spoil_the_list(
    http: httpx.Client, worker: PlayedWorker, flushed: Redis, damage: dict[Any, Any]
) -> None:
    spoiled, whole = post(http), post(http)
    flushed.hset(job_key(spoiled), mapping=damage)
    flushed.zadd(JOBS, {b"\xff": 5, b"x" * 32: float("inf")})
    listed = http.get("/jobs")
    assert listed.status_code == 200
    assert whole in [job["job_id"] for job in listed.json()["jobs"]]
    for method, path in (("GET", ""), ("GET", "?wait_s=0.1"), ("DELETE", "")):
        response = http.request(method, f"/jobs/{spoiled}{path}")
        assert response.status_code in (200, 202, 404), response.text


def test_records_and_streams_of_another_type_are_no_jobs(
    http: httpx.Client, worker: PlayedWorker, flushed: Redis
) -> None:
    spoiled, torn, whole = post(http), post(http), post(http)
    flushed.delete(job_key(spoiled))
    flushed.set(job_key(spoiled), "x")
    flushed.xadd(stream_key(torn), {"k": "token", "d": "{"})
    flushed.xadd(stream_key(torn), {"odd": "x"})
    assert whole in [job["job_id"] for job in http.get("/jobs").json()["jobs"]]
    assert http.get(f"/jobs/{spoiled}").status_code == 503
    assert http.get(f"/jobs/{torn}").json()["text"] == ""


@pytest.mark.parametrize("report", ["{", '{"name": 1}', "", b"\xff", '{"memory_mb": NaN}'])
def test_a_damaged_report_hides_no_other_worker(
    http: httpx.Client, worker: PlayedWorker, flushed: Redis, report: Any
) -> None:
    flushed.sadd(WORKERS, "odd", b"\xff")
    flushed.hset(worker_key("odd"), mapping={"report": report, "beat_ms": "x"})
    flushed.hset(worker_totals_key("odd"), mapping={"generated_tokens": "x", "e2e_ms": "-"})
    flushed.hset(SERVICE_TOTALS, "jobs_completed", "many")
    for path in PATHS:
        assert http.get(path).status_code == 200, path
    assert [w["name"] for w in http.get("/workers").json()["workers"]] == ["worker-0"]


def test_upkeep_goes_on_beside_what_it_cannot_read(
    gateway: RunningGateway, http: httpx.Client, worker: PlayedWorker, flushed: Redis
) -> None:
    held = post(http)
    assert worker.take() == held
    overdue = http.post("/generate", json={"prompt": "x", "timeout_s": 0.01}).json()["job_id"]
    flushed.sadd(WORKERS, b"\xff")
    flushed.sadd(OPEN, b"\xff", "x")
    flushed.sadd(OWNERS, b"\xff")
    flushed.zadd(DEADLINES, {b"\xff": 1, b"x": 2})
    flushed.hset(job_key("x"), "status", "queued")
    flushed.hset(worker_key("worker-0"), "report", "{")
    flushed.hset(worker_totals_key("worker-0"), "e2e_ms", "x")
    flushed.delete(beat_key("worker-0"))
    assert http.get(f"/jobs/{overdue}?wait_s=20").json()["finish_reason"] == "timeout"

    def is_back() -> bool:
        return bool(http.get(f"/jobs/{held}").json()["status"] == "queued")

    wait_for(is_back, "the worker is buried", 30)
    gateway.do_upkeep()
    assert http.get(f"/jobs/{held}").json()["position"] == 1


def test_a_stream_that_cannot_be_read_keeps_nobody_else_waiting(
    http: httpx.Client, worker: PlayedWorker, flushed: Redis, gateway: RunningGateway
) -> None:
    spoiled, whole = post(http), post(http)
    assert [worker.take(), worker.take()] == [spoiled, whole]
    flushed.set(stream_key(spoiled), "x")
    with (
        http.stream("GET", f"/jobs/{spoiled}/stream") as odd,
        http.stream("GET", f"/jobs/{whole}/stream") as response,
    ):
        worker.token(whole, 0, "fine")
        worker.end(whole, 1)
        assert "fine" in response.read().decode()
        assert b"event" not in odd.read(), "it ends, without an end"


def test_a_damaged_job_ends_as_failed_and_frees_its_place(flushed: Redis) -> None:
    serve(flushed)
    broker = make_broker(flushed, max_owner_jobs=1)
    spoiled = submit(broker, owner="a")
    flushed.hset(job_key(spoiled), mapping={"seed": "1x", "chars": "nan"})
    link = make_link(flushed, "w")
    assert pop(link) == []
    last = transcript(flushed, spoiled).end
    assert last is not None
    assert last.status is JobStatus.FAILED
    whole = submit(broker, owner="a")
    (popped,) = pop(link)
    finish(link, popped)
    assert record(flushed, whole).status is JobStatus.COMPLETED


@pytest.mark.parametrize("entry", ["x", "", "nan 1 1", "1 1"])
def test_a_damaged_load_stops_no_submit_and_no_worker(flushed: Redis, entry: str) -> None:
    serve(flushed)
    broker = make_broker(flushed, max_queued_jobs=1)
    flushed.hset(f"mini-vllm:load:{MODEL}", "evil", entry)
    flushed.hset(f"mini-vllm:passed:{MODEL}", "low", "x")
    job_id = submit(broker, priority="low")
    assert [p.job_id for p in pop(make_link(flushed, "w"))] == [job_id]
