"""The gateway over HTTP, on a real Valkey, with a worker that the test plays."""

import threading
import zlib
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from redis import Redis

from api.upkeep import forget_expired_jobs
from cli.findings import check_service
from shared.keys import JOBS, job_key
from shared.protocol import FinishReason, JobStatus, Weights
from tests.gateway import PlayedWorker, RunningGateway
from tests.servers import Valkey, wait_for

UNKNOWN = "0" * 32


def submit(http: httpx.Client, **body: Any) -> str:
    response = http.post("/generate", json={"prompt": "x"} | body)
    assert response.status_code == 202, response.text
    return str(response.json()["job_id"])


def test_a_job_from_submit_to_its_end(http: httpx.Client, worker: PlayedWorker) -> None:
    accepted = http.post("/generate", json={"prompt": "x", "seed": 5, "priority": "high"})
    body = accepted.json()
    job_id = body["job_id"]
    assert accepted.status_code == 202
    assert (body["status"], body["position"], body["seed"]) == ("queued", 1, 5)
    assert body["links"] == {"job": f"/jobs/{job_id}", "stream": f"/jobs/{job_id}/stream"}
    assert accepted.headers["location"] == f"/jobs/{job_id}"

    queued = http.get(f"/jobs/{job_id}").json()
    assert (queued["status"], queued["position"], queued["text"]) == ("queued", 1, "")
    assert (queued["priority"], queued["started_at"], queued["error"]) == ("high", None, None)

    assert worker.take() == job_id
    worker.start(job_id)
    worker.token(job_id, 0, "Hel")
    running = http.get(f"/jobs/{job_id}").json()
    assert (running["status"], running["position"], running["text"]) == ("running", None, "Hel")
    assert running["usage"] == {"prompt_tokens": 3, "cached_tokens": 0, "completion_tokens": 1}
    assert running["worker"] == "worker-0"
    assert running["timings"]["queued_s"] >= 0
    assert running["timings"]["ttft_s"] >= running["timings"]["queued_s"]

    worker.token(job_id, 1, "lo", count=2)
    worker.end(job_id, 3)
    done = http.get(f"/jobs/{job_id}").json()
    assert (done["status"], done["finish_reason"], done["text"]) == ("completed", "stop", "Hello")
    assert done["usage"]["completion_tokens"] == 3
    assert done["timings"]["total_s"] == 1.5
    assert done["created_at"].endswith("Z")
    assert done["created_at"] <= done["started_at"] <= done["ended_at"]


def test_positions_count_what_is_ahead_in_all_queues(http: httpx.Client) -> None:
    first = submit(http, priority="low")
    assert http.post("/generate", json={"prompt": "x"}).json()["position"] == 1
    assert http.post("/generate", json={"prompt": "x"}).json()["position"] == 2
    assert http.get(f"/jobs/{first}").json()["position"] == 3


def test_a_body_is_json_whatever_its_content_type_says(http: httpx.Client) -> None:
    headers = {"content-type": "application/x-www-form-urlencoded"}
    response = http.post("/generate", content=b'{"prompt": "hi"}', headers=headers)
    assert response.status_code == 202


def test_waiting_answers_as_soon_as_the_job_ends(
    http: httpx.Client, worker: PlayedWorker, gateway: RunningGateway
) -> None:
    job_id = submit(http)
    answers: list[dict[str, Any]] = []

    def wait() -> None:
        with gateway.client() as own:
            answers.append(own.get(f"/jobs/{job_id}?wait_s=20").json())

    waiting = threading.Thread(target=wait)
    waiting.start()
    wait_for(lambda: gateway.num_followers == 1, "the client waits")
    worker.play("a", "b")
    waiting.join(timeout=10)
    assert [(a["status"], a["text"]) for a in answers] == [("completed", "ab")]
    assert gateway.num_followers == 0


def test_waiting_gives_up_when_the_time_has_passed(http: httpx.Client) -> None:
    job_id = submit(http)
    assert http.get(f"/jobs/{job_id}?wait_s=0.05").json()["status"] == "queued"


def test_a_queued_job_is_cancelled_and_again_is_harmless(http: httpx.Client) -> None:
    job_id = submit(http)
    for _ in range(2):
        response = http.delete(f"/jobs/{job_id}")
        assert response.status_code == 200
        job = response.json()
        assert (job["status"], job["finish_reason"]) == ("cancelled", "cancelled")


def test_a_running_job_is_cancelled_by_its_worker(
    http: httpx.Client, worker: PlayedWorker, gateway: RunningGateway
) -> None:
    job_id = submit(http)
    worker.take()
    worker.token(job_id, 0, "kept")

    def play() -> None:
        wait_for(lambda: worker.emit(job_id, None) == {job_id: "cancelled"}, "the verdict")
        worker.end(job_id, 1, JobStatus.CANCELLED, FinishReason.CANCELLED)

    player = threading.Thread(target=play)
    player.start()
    response = http.delete(f"/jobs/{job_id}")
    player.join(timeout=10)
    assert response.status_code == 200
    assert (response.json()["status"], response.json()["text"]) == ("cancelled", "kept")


def test_a_cancel_that_takes_long_is_accepted(
    http: httpx.Client, worker: PlayedWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.routes.jobs.CANCEL_WAIT_S", 0.05)
    job_id = submit(http)
    worker.take()
    response = http.delete(f"/jobs/{job_id}")
    assert response.status_code == 202
    assert (response.json()["status"], response.json()["cancelling"]) == ("running", True)


def test_a_deadline_passes_in_the_queue(http: httpx.Client) -> None:
    job_id = submit(http, timeout_s=0.05)
    job = http.get(f"/jobs/{job_id}?wait_s=20").json()
    assert (job["status"], job["finish_reason"]) == ("failed", "timeout")
    assert job["error"]["code"] == "timeout"


def test_jobs_are_listed_newest_first_in_pages(http: httpx.Client, flushed: Redis) -> None:
    ids = [submit(http) for _ in range(7)]
    # Three of them in the same millisecond, and one whose record has expired.
    flushed.zadd(JOBS, dict.fromkeys(ids[2:5], flushed.zscore(JOBS, ids[2])))  # type: ignore[arg-type]
    flushed.delete(job_key(ids[0]))
    pages, cursor = [], ""
    while True:
        page = http.get("/jobs?limit=2" + cursor).json()
        pages.append([job["job_id"] for job in page["jobs"]])
        if page["next"] is None:
            break
        cursor = f"&before={page['next']}"
    expected = ids[:4:-1] + sorted(ids[2:5], reverse=True) + [ids[1]]
    assert pages == [expected[0:2], expected[2:4], expected[4:6]]
    assert "text" not in http.get("/jobs").json()["jobs"][0]


def test_a_list_that_fills_its_last_page_has_no_next(http: httpx.Client) -> None:
    submit(http)
    submit(http)
    assert http.get("/jobs?limit=2").json()["next"] is None


def test_expired_jobs_leave_the_list(http: httpx.Client, flushed: Redis) -> None:
    gone, there = submit(http), submit(http)
    flushed.zadd(JOBS, {gone: 1, there: 2})
    flushed.delete(job_key(gone))
    assert forget_expired_jobs(flushed, 3600) == 1
    assert flushed.zrange(JOBS, 0, -1) == [there.encode()]


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", f"/jobs/{UNKNOWN}", 404, "job_not_found"),
        ("GET", "/jobs/strange", 404, "job_not_found"),
        ("GET", f"/jobs/{UNKNOWN}/stream", 404, "job_not_found"),
        ("DELETE", f"/jobs/{UNKNOWN}", 404, "job_not_found"),
        ("GET", "/nothing", 404, "not_found"),
        ("PUT", "/generate", 405, "method_not_allowed"),
        ("GET", "/jobs?limit=0", 422, "invalid_request"),
        ("GET", "/jobs?limit=201", 422, "invalid_request"),
        ("GET", "/jobs?before=x", 422, "invalid_request"),
        ("GET", f"/jobs/{UNKNOWN}?wait_s=21", 422, "invalid_request"),
        ("GET", f"/jobs/{UNKNOWN}?wait_s=nan", 422, "invalid_request"),
        ("GET", f"/jobs/{UNKNOWN}/stream?from=-1", 422, "invalid_request"),
    ],
)
def test_every_refusal_has_one_shape(
    http: httpx.Client, method: str, path: str, status: int, code: str
) -> None:
    response = http.request(method, path)
    assert response.status_code == status
    error = response.json()["error"]
    assert error["code"] == code
    assert set(error) == {"code", "message", "field", "details"}
    assert response.headers["x-request-id"]


def chunks() -> Iterator[bytes]:
    for _ in range(100):
        yield b" " * 100


@pytest.mark.parametrize("content", [b" " * 4097, chunks()], ids=["announced", "in chunks"])
def test_a_large_body_is_refused(http: httpx.Client, content: Any) -> None:
    response = http.post("/generate", content=content)
    assert response.status_code == 413
    assert response.json()["error"]["code"] == "body_too_large"
    assert http.get("/health").status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[" * 4000,
        b'{"prompt": "\\ud800"}',
        b'{"\\ud800": 1}',
        b'{"prompt": "x", "temperature": NaN}',
        b'{"prompt": "x", "top_p": -Infinity}',
        b"\xff\xfe",
        b'{"prompt": "x", "seed": ' + b"9" * 3000 + b"}",
    ],
)
def test_a_strange_body_is_refused_in_shape(http: httpx.Client, body: bytes) -> None:
    response = http.post("/generate", content=body)
    assert response.status_code == 422
    assert response.json()["error"]["code"] == "invalid_request"


def test_a_request_id_is_kept_if_it_is_sane(http: httpx.Client, flushed: Redis) -> None:
    headers = {"x-request-id": "trace-1"}
    response = http.post("/generate", json={"prompt": "x"}, headers=headers)
    assert response.headers["x-request-id"] == "trace-1"
    key = f"rq:job:{response.json()['job_id']}"
    assert b"trace-1" in zlib.decompress(flushed.hget(key, "data"))  # type: ignore[arg-type]
    strange = http.get("/health", headers={"x-request-id": "a b"}).headers["x-request-id"]
    assert len(strange) == 32


def test_head_is_answered_as_get_without_a_body(http: httpx.Client) -> None:
    for path in ("/", "/health", "/jobs", "/metrics"):
        response = http.head(path)
        assert (response.status_code, response.content) == (200, b"")


def test_the_docs_describe_the_body_of_generate(http: httpx.Client) -> None:
    assert http.get("/docs").status_code == 200
    route = http.get("/openapi.json").json()["paths"]["/generate"]["post"]
    schema = route["requestBody"]["content"]["application/json"]["schema"]
    assert "max_tokens" in schema["properties"]
    assert "$ref" not in str(schema)


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        (f"/jobs/{UNKNOWN}", {"GET", "DELETE"}),
        ("/generate", {"POST"}),
        (f"/jobs/{UNKNOWN}/stream", {"GET"}),
    ],
)
def test_allow_lists_all_methods_of_a_path(
    http: httpx.Client, path: str, allowed: set[str]
) -> None:
    response = http.put(path)
    assert response.status_code == 405
    assert set(response.headers["allow"].split(", ")) == allowed


def test_ready_says_why_not(http: httpx.Client, flushed: Redis) -> None:
    response = http.get("/ready")
    assert response.status_code == 503
    assert response.json()["error"]["code"] == "no_worker_ready"
    assert response.headers["retry-after"]
    PlayedWorker(flushed, "worker-0", "another-model")
    assert "another-model" in http.get("/ready").json()["error"]["message"]
    PlayedWorker(flushed, "worker-1", "smollm2")
    assert http.get("/ready").json() == {"status": "ready", "workers_ready": 1}


def test_workers_with_other_weights_are_told_of_and_their_jobs_say_which(
    http: httpx.Client, flushed: Redis
) -> None:
    old, new = (Weights(format=name, fingerprint=name[-1] * 16) for name in ("q4_1", "q4_0"))
    first = PlayedWorker(flushed, "worker-0", "smollm2", weights=old)
    assert http.get("/workers").json()["warnings"] == []
    assert "warnings" not in http.get("/ready").json()
    assert http.get("/workers").json()["workers"][0]["weights"] == old.model_dump()
    job_id = submit(http)
    assert first.take() == job_id
    first.start(job_id)
    assert http.get(f"/jobs/{job_id}").json()["weights"] == old.model_dump()
    first.end(job_id, 0)
    assert http.get(f"/jobs/{job_id}").json()["weights"] == old.model_dump()
    PlayedWorker(flushed, "worker-1", "smollm2", weights=new)
    (warning,) = http.get("/workers").json()["warnings"]
    assert "workers of smollm2 run different weights" in warning
    assert http.get("/ready").json()["warnings"] == [warning]
    findings = list(check_service({"url": str(http.base_url)}))
    assert [(found.level, found.what) for found in findings][1:] == [("warn", warning)]


def test_without_redis_it_lives_and_says_so_and_recovers(valkey: Valkey) -> None:
    gateway = RunningGateway(valkey.url)
    gateway.start()
    try:
        with gateway.client() as http:
            job_id = submit(http)
            valkey.stop()
            for method, path in (
                ("POST", "/generate"),
                ("GET", f"/jobs/{job_id}"),
                ("GET", f"/jobs/{job_id}/stream"),
                ("DELETE", f"/jobs/{job_id}"),
                ("GET", "/metrics"),
                ("GET", "/ready"),
            ):
                content = b'{"prompt": "x"}' if method == "POST" else None
                response = http.request(method, path, content=content)
                assert response.status_code == 503, path
                assert response.json()["error"]["code"] == "redis_unavailable"
                assert response.headers["retry-after"]
            assert http.get("/health").status_code == 200
            valkey.start()
            job = wait_for(
                lambda: r if (r := http.get(f"/jobs/{job_id}")).status_code == 200 else None,
                "the job is back",
            )
            assert job.json()["status"] == "queued"
    finally:
        gateway.stop()


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("GET", "/jobs?limits=5", "limits"),
        ("GET", f"/jobs/{UNKNOWN}?wait=1", "wait"),
        ("GET", f"/jobs/{UNKNOWN}/stream?form=3", "form"),
        ("DELETE", f"/jobs/{UNKNOWN}?wait_s=1", "wait_s"),
        ("GET", "/metrics?x=1", "x"),
    ],
)
def test_an_unknown_query_parameter_is_refused_by_name(
    http: httpx.Client, method: str, path: str, name: str
) -> None:
    response = http.request(method, path)
    assert response.status_code == 422
    assert f"`{name}`" in response.json()["error"]["message"]


def test_a_path_with_a_slash_too_many_has_the_shape_of_an_error(http: httpx.Client) -> None:
    response = http.get("/jobs/")
    assert (response.status_code, response.json()["error"]["code"]) == (404, "not_found")
