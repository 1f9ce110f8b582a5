"""Workers that could not start, as a gateway tells of them."""

from collections.abc import Iterator

import httpx
import pytest
from redis import Redis

from shared.failures import MAX_SHOWN, TTL_S, forget_failure, report_failure
from shared.keys import FAILURES
from tests.gateway import PlayedWorker, RunningGateway

MODEL = "smollm2"


def fail(client: Redis, name: str, message: str = "there is no model 'x'") -> None:
    report_failure(client, name=name, host="h", model=MODEL, message=message)


def told(http: httpx.Client, **headers: str) -> str:
    response = http.get("/ready", headers=headers)
    assert response.status_code == 503
    assert response.json()["error"]["code"] == "no_worker_ready"
    return str(response.json()["error"]["message"])


def test_ready_names_who_failed_and_who_is_on_the_way(http: httpx.Client, flushed: Redis) -> None:
    assert "says so in its own log only" in told(http)
    fail(flushed, "worker-0")
    assert told(http).endswith("worker-0 (smollm2) failed: there is no model 'x'")
    fail(flushed, "worker-0", "it is no GGUF file")
    PlayedWorker(flushed, "worker-1", "another")
    message = told(http)
    assert "worker-1 (another) ready; worker-0 (smollm2) failed: it is no GGUF file" in message
    assert "no model 'x'" not in message
    for i in range(10):
        fail(flushed, f"many-{i}")
    assert told(http).endswith("7 more failed, see /workers")


def test_workers_lists_failures_until_one_of_that_name_is_ready(
    http: httpx.Client, flushed: Redis
) -> None:
    fail(flushed, "worker-0")
    fail(flushed, "worker-1")
    PlayedWorker(flushed, "worker-2", MODEL)
    body = http.get("/workers").json()
    assert [worker["name"] for worker in body["workers"]] == ["worker-2"]
    assert {f["name"] for f in body["failures"]} == {"worker-0", "worker-1"}
    assert body["failures"][0]["at"] == pytest.approx(flushed.time()[0], abs=60)
    forget_failure(flushed, "worker-0")
    assert [f["name"] for f in http.get("/workers").json()["failures"]] == ["worker-1"]


def test_a_crash_loop_of_renamed_containers_is_bounded_and_expires(
    http: httpx.Client, flushed: Redis
) -> None:
    flushed.hset(FAILURES, mapping={f"odd-{i}": "{" for i in range(100)})
    for i in range(2 * MAX_SHOWN):
        fail(flushed, f"worker-{i}", "x" * 10_000)
    assert flushed.hlen(FAILURES) == MAX_SHOWN
    assert flushed.hexists(FAILURES, f"worker-{2 * MAX_SHOWN - 1}")
    assert 0 < flushed.ttl(FAILURES) <= TTL_S
    assert len(http.get("/workers").json()["failures"]) == MAX_SHOWN
    assert len(told(http)) < 4000


def test_what_is_no_report_harms_nothing(http: httpx.Client, flushed: Redis) -> None:
    flushed.set(FAILURES, "x")
    assert "none has reported" in told(http)
    assert http.get("/workers").json()["failures"] == []
    forget_failure(flushed, "worker-0")
    fail(flushed, "worker-0", "a path with \udcff in it")
    assert "worker-0 (smollm2) failed: a path with ? in it" in told(http)
    flushed.hset(FAILURES, mapping={b"\xff": b"\xff", b"odd": b"[]"})
    assert "worker-0 (smollm2) failed" in told(http)


@pytest.fixture
def closed(valkey_url: str, flushed: Redis) -> Iterator[RunningGateway]:
    gateway = RunningGateway(valkey_url, api_keys="alice", admin_keys="root", metrics_key="scrape")
    yield gateway.start()
    gateway.stop()


def test_where_keys_are_set_only_an_admin_is_told_at_ready(
    closed: RunningGateway, flushed: Redis
) -> None:
    fail(flushed, "worker-0")
    strangers = [
        {},
        {"X-API-Key": "alice"},
        {"X-API-Key": "scrape"},
        {"X-API-Key": "wrong"},
        {"Authorization": "Basic eDp5"},
    ]
    with closed.client() as http:
        for headers in strangers:
            assert told(http, **headers) == "No worker is ready."
        for headers in ({"X-API-Key": "root"}, {"Authorization": "Bearer root"}):
            assert "worker-0 (smollm2) failed: there is no model" in told(http, **headers)
