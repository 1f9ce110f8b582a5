"""Keys, owners and shares, as clients meet them."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from redis import Redis

from shared.keys import JOBS, OWNERS, jobs_key
from tests.gateway import PlayedWorker, RunningGateway

KEYS = {"api_keys": "alice,bob", "admin_keys": "root", "metrics_key": "scrape"}


@pytest.fixture
def closed(valkey_url: str, flushed: Redis) -> Iterator[RunningGateway]:
    gateway = RunningGateway(
        valkey_url, **KEYS, max_requests_per_minute=12, max_queued_jobs_per_key=2
    )
    yield gateway.start()
    gateway.stop()


def call(gateway: RunningGateway, key: str | None, method: str, path: str, **more: Any) -> Any:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    with gateway.client() as http:
        return http.request(method, path, headers=headers, **more)


def submit(gateway: RunningGateway, key: str, **body: Any) -> str:
    response = call(gateway, key, "POST", "/generate", json={"prompt": "x"} | body)
    assert response.status_code == 202, response.text
    return str(response.json()["job_id"])


def test_without_a_key_there_is_nothing_but_health(closed: RunningGateway) -> None:
    for path in ("/", "/jobs", "/metrics", "/docs", "/openapi.json", "/nowhere"):
        response = call(closed, None, "GET", path)
        assert response.status_code == 401, path
        assert response.headers["www-authenticate"] == "Bearer"
        assert response.json()["error"]["code"] == "unauthorized"
        assert response.headers["x-request-id"]
    assert call(closed, "eve", "POST", "/generate", content=b"x" * 100).status_code == 401
    assert call(closed, None, "GET", "/health").status_code == 200
    ready = call(closed, None, "GET", "/ready")
    assert (ready.status_code, "smollm2" in ready.text) == (503, False)


def test_health_is_told_to_a_load_balancer_with_an_authorization_of_its_own(
    closed: RunningGateway,
) -> None:
    with closed.client() as http:
        basic = {"Authorization": "Basic eDp5"}
        assert http.get("/health", headers=basic).status_code == 200
        assert http.get("/ready", headers=basic).status_code == 503
        assert http.get("/jobs", headers=basic).status_code == 401


def test_a_job_is_there_for_its_key_and_for_admins_alone(
    closed: RunningGateway, flushed: Redis
) -> None:
    job_id = submit(closed, "alice")
    for path in (f"/jobs/{job_id}", f"/jobs/{job_id}/stream"):
        assert call(closed, "bob", "GET", path).status_code == 404
    assert call(closed, "bob", "DELETE", f"/jobs/{job_id}").status_code == 404
    assert call(closed, "alice", "GET", f"/jobs/{job_id}").json()["status"] == "queued"
    assert call(closed, "root", "GET", f"/jobs/{job_id}").json()["status"] == "queued"
    other = submit(closed, "bob")

    def listed(key: str) -> list[str]:
        return [job["job_id"] for job in call(closed, key, "GET", "/jobs").json()["jobs"]]

    assert (listed("alice"), listed("bob"), listed("root")) == ([job_id], [other], [other, job_id])
    assert call(closed, "root", "DELETE", f"/jobs/{job_id}").json()["status"] == "cancelled"
    assert b"alice" not in b"".join(flushed.scan_iter())
    assert flushed.scard(OWNERS) == 2
    members: Any = flushed.smembers(OWNERS)
    owners = [name.decode() for name in members]
    assert sorted(flushed.zcard(jobs_key(owner)) for owner in owners) == [1, 1]
    assert flushed.zcard(JOBS) == 2


def test_the_pool_is_shown_to_admins_and_its_numbers_to_the_metrics_key(
    closed: RunningGateway, flushed: Redis
) -> None:
    PlayedWorker(flushed, "worker-0", "smollm2")
    assert call(closed, "root", "GET", "/workers").status_code == 200
    assert call(closed, "root", "GET", "/metrics").status_code == 200
    assert call(closed, "scrape", "GET", "/metrics").status_code == 200
    for key, path in (("alice", "/workers"), ("alice", "/metrics"), ("scrape", "/jobs")):
        response = call(closed, key, "GET", path)
        assert response.status_code == 403
        assert response.json()["error"]["code"] == "forbidden"


def test_one_key_has_so_many_jobs_in_the_queue(closed: RunningGateway, flushed: Redis) -> None:
    submit(closed, "alice")
    submit(closed, "alice")
    response = call(closed, "alice", "POST", "/generate", json={"prompt": "x"})
    assert response.status_code == 429
    assert response.json()["error"]["code"] == "too_many_jobs"
    assert int(response.headers["retry-after"]) >= 1
    submit(closed, "bob")


def test_one_key_has_so_many_requests_in_a_minute(closed: RunningGateway) -> None:
    statuses = [call(closed, "alice", "GET", "/jobs").status_code for _ in range(13)]
    assert statuses == [200] * 12 + [429]
    response = call(closed, "alice", "GET", "/jobs")
    assert response.json()["error"]["code"] == "rate_limited"
    assert "12 requests" in response.json()["error"]["message"]
    assert 50 <= int(response.headers["retry-after"]) <= 60
    assert call(closed, "bob", "GET", "/jobs").status_code == 200
    assert call(closed, None, "GET", "/health").status_code == 200


def test_x_api_key_is_as_good(closed: RunningGateway) -> None:
    with closed.client() as http:
        assert http.get("/jobs", headers={"X-API-Key": "bob"}).status_code == 200
        assert http.get("/jobs", headers={"X-API-Key": "eve"}).status_code == 401


def test_a_full_queue_is_429_with_a_time_to_come_again(valkey_url: str, flushed: Redis) -> None:
    gateway = RunningGateway(valkey_url, max_queued_jobs=3).start()
    try:
        with gateway.client() as http:
            statuses = [http.post("/generate", json={"prompt": "x"}) for _ in range(5)]
    finally:
        gateway.stop()
    assert [response.status_code for response in statuses] == [202] * 3 + [429] * 2
    assert statuses[-1].json()["error"]["code"] == "queue_full"
    assert int(statuses[-1].headers["retry-after"]) >= 1


def test_an_idempotency_key_names_one_job(http: httpx.Client) -> None:
    def post(key: str, **body: Any) -> httpx.Response:
        headers = {"Idempotency-Key": key}
        return http.post("/generate", headers=headers, json={"prompt": "x"} | body)

    first, again = post("k-1"), post("k-1")
    assert (first.status_code, again.status_code) == (202, 200)
    assert again.json() == first.json()
    conflict = post("k-1", max_tokens=3)
    assert conflict.status_code == 409
    assert conflict.json()["error"]["code"] == "idempotency_conflict"
    assert post("k-2").json()["job_id"] != first.json()["job_id"]
    twice = [("Idempotency-Key", "k-1"), ("Idempotency-Key", "k-2")]
    assert http.post("/generate", headers=twice, json={"prompt": "x"}).status_code == 422
    for bad in ("", "two words", "x" * 256):
        refused = post(bad)
        assert refused.status_code == 422, bad
        assert refused.json()["error"]["field"] == "Idempotency-Key"


def test_without_any_worker_a_job_is_not_taken(http: httpx.Client, flushed: Redis) -> None:
    flushed.flushall()
    response = http.post("/generate", json={"prompt": "x"})
    assert response.status_code == 503
    assert response.json()["error"]["code"] == "no_worker_ready"
    assert response.headers["retry-after"]
