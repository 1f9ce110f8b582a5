"""OpenAI's routes over a real socket, with a worker that the test plays."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from redis import Redis

from shared.keys import job_key, queue_key, queue_name
from shared.protocol import EndEvent, FinishReason, JobError, JobStatus, Timings, Usage
from tests.gateway import PlayedWorker, RunningGateway
from tests.servers import wait_for

CHAT = "/v1/chat/completions"
HI: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}]}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
CALL = '<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>'


@pytest.fixture
def impatient(valkey_url: str, flushed: Redis) -> Iterator[RunningGateway]:
    """Its streams do not wait long for a job to begin."""
    assert flushed.ping()
    gateway = RunningGateway(valkey_url, model="smollm2", header_wait_s=0.2, sse_keepalive_s=0.1)
    gateway.start()
    yield gateway
    gateway.stop()


@contextmanager
def beside(work: Callable[[], object]) -> Iterator[None]:
    """In a thread of its own, since the request waits for it."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    yield
    thread.join(timeout=20)
    assert not thread.is_alive()
    assert not failures, failures


def chunks(response: httpx.Response) -> Iterator[Any]:
    """The data of each event; comments are passed over."""
    for line in response.iter_lines():
        if line.startswith("data: "):
            data = line.removeprefix("data: ")
            yield data if data == "[DONE]" else json.loads(data)


def fail(
    worker: PlayedWorker, job_id: str, code: str, message: str, field: str | None = None
) -> None:
    event = EndEvent(
        status=JobStatus.FAILED,
        finish_reason=FinishReason.ERROR,
        usage=Usage(),
        timings=Timings(),
        error=JobError(code=code, message=message, field=field),
        seed=1,
        attempts=1,
    )
    worker.emit(job_id, event)


def cancelled(http: httpx.Client, job_id: str) -> None:
    wait_for(lambda: http.get(f"/jobs/{job_id}").json()["status"] == "cancelled", "it is cancelled")


def test_an_answer_waits_for_its_end(http: httpx.Client, worker: PlayedWorker) -> None:
    with beside(lambda: worker.play("a", "b")):
        response = http.post(CHAT, json=HI | {"model": "default", "user": "u"})
    assert response.status_code == 200
    body = response.json()
    assert body["model"] == "smollm2"
    assert body["choices"][0]["message"]["content"] == "ab"
    assert body["usage"]["completion_tokens"] == 2
    job_id = response.headers["x-job-id"]
    assert body["id"] == f"chatcmpl-{job_id}"
    assert http.get(f"/jobs/{job_id}").json()["user"] == "u"
    later = http.get(f"{CHAT}/{body['id']}").json()
    assert later["choices"] == body["choices"]
    assert later["status"] == "completed"


def test_a_stream_is_told_while_it_is_written(http: httpx.Client, worker: PlayedWorker) -> None:
    jobs: list[str] = []

    def begin() -> None:
        jobs.append(worker.take())
        worker.start(jobs[0])
        worker.token(jobs[0], 0, "é")

    body = {"prompt": "x", "stream": True, "stream_options": {"include_usage": True}}
    with (
        beside(begin),
        http.stream("POST", "/v1/completions", json=body) as response,
    ):
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["x-accel-buffering"] == "no"
        told = chunks(response)
        assert next(told)["choices"][0]["text"] == "é"
        worker.token(jobs[0], 1, "b")
        assert next(told)["choices"][0]["text"] == "b"
        worker.end(jobs[0], 2)
        assert next(told)["choices"][0]["finish_reason"] == "stop"
        usage = next(told)
        assert (usage["choices"], usage["usage"]["total_tokens"]) == ([], 5)
        assert next(told) == "[DONE]"
        assert next(told, None) is None
    assert response.headers["x-job-id"] == jobs[0]


@pytest.mark.parametrize("stream", [False, True])
def test_a_job_that_cannot_begin_has_a_status(
    http: httpx.Client, worker: PlayedWorker, stream: bool
) -> None:
    words = "the prompt has 5000 tokens"
    code, field = "context_length_exceeded", "messages"
    with beside(lambda: fail(worker, worker.take(), code, words, field)):
        response = http.post(CHAT, json=HI | {"stream": stream})
    assert response.status_code == 400
    assert response.json()["error"] == {
        "message": words,
        "type": "invalid_request_error",
        "param": field,
        "code": code,
    }
    told = http.get(f"/jobs/{http.get('/jobs').json()['jobs'][0]['job_id']}").json()["error"]
    assert told == {"code": code, "message": words, "field": field}


def test_what_fails_later_ends_the_stream_with_its_error(
    impatient: RunningGateway, flushed: Redis
) -> None:
    worker = PlayedWorker(flushed, "worker-0", "smollm2")
    with (
        impatient.client() as http,
        http.stream("POST", CHAT, json=HI | {"stream": True}) as response,
    ):
        assert response.status_code == 200, "it waited long enough"
        job_id = worker.take()
        worker.start(job_id)
        worker.token(job_id, 0, "a")
        fail(worker, job_id, "worker_lost", "three workers died of it")
        role, text, error, done = chunks(response)
    assert role["choices"][0]["delta"]["role"] == "assistant"
    assert text["choices"][0]["delta"]["content"] == "a"
    assert error["error"]["code"] == "worker_lost"
    assert done == "[DONE]"


def test_a_silent_stream_has_comments(impatient: RunningGateway) -> None:
    with (
        impatient.client() as http,
        http.stream("POST", CHAT, json=HI | {"stream": True}) as response,
    ):
        lines = response.iter_lines()
        assert next(lines) == ": keep-alive"


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_ends_all_its_jobs(
    impatient: RunningGateway, flushed: Redis, stream: bool
) -> None:
    worker = PlayedWorker(flushed, "worker-0", "smollm2")
    body = HI | {"stream": stream, "n": 2}
    with httpx.Client(base_url=impatient.url, timeout=1) as http:
        if stream:
            with http.stream("POST", CHAT, json=body):
                pass
        else:
            with pytest.raises(httpx.ReadTimeout):
                http.post(CHAT, json=body)
    with impatient.client() as http:
        jobs = http.get("/jobs").json()["jobs"]
        assert len(jobs) == 2
        for job in jobs:
            cancelled(http, job["job_id"])
    assert worker.model == "smollm2"


def test_a_client_with_an_idempotency_key_may_come_again(
    impatient: RunningGateway, flushed: Redis
) -> None:
    worker = PlayedWorker(flushed, "worker-0", "smollm2")
    headers = {"Idempotency-Key": "order-1"}
    body = {"prompt": ["a", "b"]}
    with (
        httpx.Client(base_url=impatient.url, timeout=1) as http,
        pytest.raises(httpx.ReadTimeout),
    ):
        http.post("/v1/completions", json=body, headers=headers)
    worker.play("one")
    worker.play("two")
    with impatient.client() as http:
        again = http.post("/v1/completions", json=body, headers=headers)
        assert [choice["text"] for choice in again.json()["choices"]] == ["one", "two"]
        assert len(http.get("/jobs").json()["jobs"]) == 2
        other = http.post("/v1/completions", json={"prompt": ["a", "c"]}, headers=headers)
        fewer = http.post("/v1/completions", json={"prompt": ["a"]}, headers=headers)
        for refused in (other, fewer):
            assert refused.status_code == 409
            assert refused.json()["error"]["code"] == "idempotency_conflict"
        same = http.post("/v1/completions", json=body | {"model": "default"}, headers=headers)
        assert same.json()["choices"] == again.json()["choices"]
        part = http.get(f"/v1/completions/{again.json()['id']}")
        assert part.status_code == 400 and "has 2 choices" in part.json()["error"]["message"]


def test_choices_are_all_taken_or_none(valkey_url: str, flushed: Redis) -> None:
    gateway = RunningGateway(valkey_url, model="smollm2", max_queued_jobs=3)
    gateway.start()
    try:
        with gateway.client() as http:
            response = http.post(CHAT, json=HI | {"n": 5})
            assert response.status_code == 429
            assert response.json()["error"]["type"] == "rate_limit_error"
            assert int(response.headers["retry-after"]) >= 1
            statuses = {job["status"] for job in http.get("/jobs").json()["jobs"]}
            assert statuses == {"cancelled"}
        assert flushed.llen(queue_key(queue_name("smollm2", "normal"))) == 0
    finally:
        gateway.stop()


def test_a_choice_that_fails_ends_the_others(http: httpx.Client, worker: PlayedWorker) -> None:
    def play() -> None:
        first, second = worker.take(), worker.take()
        worker.start(first)
        worker.token(first, 0, "a")
        fail(worker, second, "worker_lost", "lost")

    with beside(play):
        response = http.post(CHAT, json=HI | {"n": 2})
    assert (response.status_code, response.headers["x-should-retry"]) == (500, "false")
    assert response.json()["error"]["code"] == "worker_lost"
    jobs = http.get("/jobs?limit=2").json()["jobs"]
    job = next(job for job in jobs if job["status"] != "failed")
    assert job["cancelling"] or job["status"] == "cancelled"


def test_a_job_that_somebody_cancels_is_an_error(http: httpx.Client, worker: PlayedWorker) -> None:
    def play() -> None:
        job_id = wait_for(lambda: http.get("/jobs").json()["jobs"], "it waits")[0]["job_id"]
        http.delete(f"/jobs/{job_id}")

    with beside(play):
        response = http.post("/v1/completions", json={"prompt": "x"})
    assert response.status_code == 422
    assert response.json()["error"]["code"] == "job_cancelled"
    assert worker.model == "smollm2"


def test_a_background_answer_is_fetched_when_it_is_there(
    http: httpx.Client, worker: PlayedWorker
) -> None:
    headers = {"Idempotency-Key": "k"}
    response = http.post(CHAT, json=HI | {"background": True}, headers=headers)
    assert response.status_code == 202
    path = response.headers["location"]
    assert (response.json()["status"], response.json()["choices"]) == ("queued", [])
    assert http.get(path).json()["status"] == "queued"
    job_id = worker.take()
    worker.start(job_id)
    assert http.get(path).json()["status"] == "in_progress"
    worker.token(job_id, 0, "a")
    worker.end(job_id, 1)
    done = http.get(path).json()
    assert done["status"] == "completed"
    assert done["choices"][0]["message"]["content"] == "a"
    again = http.post(CHAT, json=HI | {"background": True}, headers=headers)
    assert (again.status_code, again.json()) == (200, done)
    plain = http.post("/generate", json={"prompt": "x"}).json()["job_id"]
    for other in (path.replace("chat/", ""), f"{CHAT}/{job_id}", f"{CHAT}/chatcmpl-{plain}"):
        missing = http.get(other)
        assert (missing.status_code, missing.json()["error"]["code"]) == (404, "job_not_found")


def test_calls_of_tools_are_read_in_the_format_of_the_model(
    http: httpx.Client, flushed: Redis
) -> None:
    worker = PlayedWorker(flushed, "worker-0", "smollm2", tool_format="hermes")
    with beside(lambda: worker.play("See ", CALL[:9], CALL[9:])):
        body = http.post(CHAT, json=HI | {"tools": [TOOL]}).json()
    (choice,) = body["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] == "See"
    (call,) = choice["message"]["tool_calls"]
    assert call["function"] == {"name": "f", "arguments": '{"x": 1}'}
    assert http.get(f"{CHAT}/{body['id']}").json()["choices"] == body["choices"]
    with (
        beside(lambda: worker.play("See ", CALL[:9], CALL[9:])),
        http.stream("POST", CHAT, json=HI | {"tools": [TOOL], "stream": True}) as response,
    ):
        *told, done = chunks(response)
    assert done == "[DONE]"
    deltas = [chunk["choices"][0]["delta"] for chunk in told]
    assert "".join(delta.get("content", "") for delta in deltas) == "See"
    calls = [delta["tool_calls"][0] for delta in deltas if "tool_calls" in delta]
    assert calls[0]["function"]["name"] == "f"
    assert "".join(call["function"]["arguments"] for call in calls) == '{"x": 1}'


def test_tools_are_refused_for_a_model_that_knows_none(
    http: httpx.Client, worker: PlayedWorker
) -> None:
    response = http.post(CHAT, json=HI | {"tools": [TOOL]})
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "tools"
    assert worker.model in response.json()["error"]["message"]


def test_a_model_picks_its_queue_on_every_route(http: httpx.Client, flushed: Redis) -> None:
    facts = {"context_tokens": 20, "max_piece_bytes": 4, "num_vocab": 100}
    other = PlayedWorker(flushed, "worker-1", "other", **facts)
    listed = {model["id"]: model for model in http.get("/v1/models").json()["data"]}
    assert list(listed) == ["smollm2", "other"]
    assert listed["smollm2"]["is_default"]
    assert (listed["other"]["context_tokens"], listed["other"]["ready"]) == (20, 1)
    job_id = http.post("/generate", json={"prompt": "x", "model": "other"}).json()["job_id"]
    assert other.play("a") == job_id
    with beside(lambda: other.play("b")):
        answer = http.post("/v1/completions", json={"prompt": "x", "model": "other.gguf"}).json()
    assert (answer["model"], answer["choices"][0]["text"]) == ("other", "b")
    http.post("/generate", json={"prompt": "x", "model": "other"})
    http.post("/generate", json={"prompt": "x", "model": "default"})
    assert http.get("/metrics").json()["queue"]["depth"] == 2
    assert http.get("/ready").status_code == 503, "that is about the gateway's own"


def test_what_a_model_certainly_cannot_do_never_waits(http: httpx.Client, flushed: Redis) -> None:
    PlayedWorker(
        flushed, "worker-0", "smollm2", context_tokens=20, max_piece_bytes=4, num_vocab=100
    )
    long = {"prompt": "x" * 80}
    for path, status in (("/generate", 422), ("/v1/completions", 400)):
        response = http.post(path, json=long)
        assert response.status_code == status
        assert response.json()["error"]["code"] == "context_length_exceeded"
    response = http.post("/v1/completions", json={"prompt": [5, 100]})
    assert response.json()["error"]["param"] == "prompt"
    response = http.post("/v1/completions", json={"prompt": "x", "logit_bias": {"100": 1}})
    assert response.json()["error"]["param"] == "logit_bias"
    assert http.get("/jobs").json()["jobs"] == []


def test_a_model_that_nobody_serves_is_not_found(http: httpx.Client) -> None:
    for path in ("/generate", "/v1/completions"):
        response = http.post(path, json={"prompt": "x", "model": "gpt-4o"})
        assert response.status_code == 404
        assert response.json()["error"]["code"] == "model_not_found"
    response = http.get("/v1/models/gpt-4o")
    assert (response.status_code, response.json()["error"]["param"]) == (404, "model")
    assert http.get("/v1/models/default").json()["id"] == "smollm2"


def test_errors_of_no_route_have_openais_shape_too(valkey_url: str, flushed: Redis) -> None:
    assert flushed.ping()
    gateway = RunningGateway(
        valkey_url, model="smollm2", api_keys="sesame", max_body_bytes=2048
    ).start()
    try:
        with gateway.client() as http:
            for method, path, body, status, kind in (
                ("POST", CHAT, HI, 401, "authentication_error"),
                ("GET", "/v1/nothing", None, 401, "authentication_error"),
            ):
                response = http.request(method, path, json=body)
                assert response.status_code == status
                assert response.json()["error"]["type"] == kind
                assert response.headers["www-authenticate"] == "Bearer"
            http.headers["Authorization"] = "Bearer sesame"
            large = HI | {"user": "x" * 4000}
            cases: list[tuple[str, str, Any, int, str]] = [
                ("GET", "/v1/nothing", None, 404, "not_found"),
                ("GET", CHAT, None, 405, "method_not_allowed"),
                ("POST", CHAT, large, 413, "body_too_large"),
                ("POST", CHAT + "?x=1", HI, 400, "invalid_request"),
                ("POST", CHAT, [], 400, "invalid_request"),
            ]
            for method, path, body, status, code in cases:
                response = http.request(method, path, json=body)
                assert response.status_code == status, path
                error = response.json()["error"]
                assert set(error) == {"message", "type", "param", "code"}
                assert error["code"] == code
            assert http.get("/nothing").json()["error"]["details"] == []
    finally:
        gateway.stop()


def test_a_call_that_comes_again_is_told_as_the_first_time(
    http: httpx.Client, flushed: Redis
) -> None:
    """By the clock of Redis, which made its job, and with the workers that were there then."""
    facts: dict[str, Any] = {"llama_cpp": "0.3", "model_description": "tiny"}
    worker = PlayedWorker(flushed, "worker-0", "smollm2", **facts)
    headers = {"Idempotency-Key": "again"}
    with beside(lambda: worker.play("a")):
        first = http.post(CHAT, json=HI, headers=headers).json()
    assert first["system_fingerprint"].startswith("fp_")
    job_id = first["id"].removeprefix("chatcmpl-")
    created_ms = int(flushed.hget(job_key(job_id), "created_ms") or 0)
    assert first["created"] == created_ms // 1000
    flushed.hset(job_key(job_id), "created_ms", created_ms - 3_000_000)  # as if it were long ago
    PlayedWorker(flushed, "worker-1", "smollm2", **facts | {"llama_cpp": "0.4"})
    wait_for(
        lambda: (
            http.post(CHAT, json=HI | {"background": True}).json()["system_fingerprint"]
            != first["system_fingerprint"]
        ),
        "the gateway sees the other worker",
    )
    again = http.post(CHAT, json=HI, headers=headers).json()
    assert again == first | {"created": (created_ms - 3_000_000) // 1000}
    later = http.get(f"{CHAT}/{first['id']}").json()
    assert {name: later[name] for name in again} == again
    streamed = http.post(CHAT, json=HI | {"stream": True}, headers=headers)
    told = [chunk for chunk in chunks(streamed) if chunk != "[DONE]"]
    assert {(chunk["created"], chunk["system_fingerprint"]) for chunk in told} == {
        (again["created"], again["system_fingerprint"])
    }
