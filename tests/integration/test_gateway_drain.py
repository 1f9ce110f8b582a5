"""A gateway that is told to stop: what it still does, for how long, and that it then ends."""

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from redis import Redis

from shared.keys import job_key, wake_key
from tests.gateway import PlayedWorker
from tests.gateway_process import GatewayProcess, running
from tests.integration.conftest import MODEL
from tests.servers import wait_for
from tests.service import sse_events

FOR_EVER = {"MINI_VLLM_STREAM_GRACE_S": "600"}


def submit(http: httpx.Client) -> str:
    return str(http.post("/generate", json={"prompt": "x"}).json()["job_id"])


@contextmanager
def open_stream(http: httpx.Client, job_id: str) -> Iterator[Any]:
    with http.stream("GET", f"/jobs/{job_id}/stream") as response:
        assert response.status_code == 200
        yield sse_events(response)


def wait_for_refusal(http: httpx.Client) -> httpx.Response:
    """The first answer after the gateway has taken notice of the signal."""

    def refusal() -> httpx.Response | None:
        response = http.post("/generate", json={"prompt": "x"})
        return response if response.status_code != 202 else None

    response: httpx.Response = wait_for(refusal, "POST /generate is refused")
    return response


def assert_ended_well(gateway: GatewayProcess) -> None:
    code, output = gateway.wait()
    assert code == 0, output
    assert "Traceback" not in output


def test_an_open_stream_goes_on_to_its_end_while_new_jobs_are_refused(
    valkey_url: str, flushed: Redis
) -> None:
    worker = PlayedWorker(flushed, "worker-0", MODEL)
    with running(valkey_url, **FOR_EVER) as gateway, gateway.client() as http:
        submit(http)
        job_id = worker.take()
        worker.start(job_id)
        worker.token(job_id, 0, "a")
        with open_stream(http, job_id) as events:
            assert [next(events)[0], next(events)[0]] == ["start", "token"]
            gateway.signal(signal.SIGTERM)
            refusal = wait_for_refusal(http)
            assert refusal.status_code == 503
            assert refusal.json()["error"]["code"] == "shutting_down"
            assert int(refusal.headers["retry-after"]) >= 1
            ready = http.get("/ready")
            assert (ready.status_code, ready.json()["error"]["code"]) == (503, "shutting_down")
            assert http.get("/health").status_code == 200
            assert http.get(f"/jobs/{job_id}").json()["text"] == "a"
            worker.token(job_id, 1, "b")
            worker.end(job_id, 2)
            assert [(kind, event_id) for kind, event_id, _ in events] == [
                ("token", "2"),
                ("end", "2.end"),
            ]
        assert_ended_well(gateway)


def test_a_long_poll_is_answered_with_the_end_of_its_job(valkey_url: str, flushed: Redis) -> None:
    worker = PlayedWorker(flushed, "worker-0", MODEL)
    with (
        running(valkey_url, **FOR_EVER) as gateway,
        gateway.client() as http,
        ThreadPoolExecutor(1) as pool,
    ):
        submit(http)
        job_id = worker.take()
        worker.start(job_id)
        poll = pool.submit(http.get, f"/jobs/{job_id}?wait_s=60")
        wait_for(lambda: flushed.keys(wake_key("*")), "the poll follows the job")
        gateway.signal(signal.SIGTERM)
        wait_for_refusal(http)
        worker.end(job_id, 0)
        assert poll.result().json()["status"] == "completed"
        assert_ended_well(gateway)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stream_that_does_not_end_is_ended_after_the_grace(
    valkey_url: str, flushed: Redis, number: signal.Signals
) -> None:
    with (
        running(valkey_url, MINI_VLLM_STREAM_GRACE_S="0.5") as gateway,
        gateway.client() as http,
        open_stream(http, submit(http)) as events,
    ):
        gateway.signal(number)
        assert list(events) == []
        assert_ended_well(gateway)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_waits_for_no_stream(
    valkey_url: str, flushed: Redis, number: signal.Signals
) -> None:
    with (
        running(valkey_url, **FOR_EVER) as gateway,
        gateway.client() as http,
        open_stream(http, submit(http)) as events,
    ):
        gateway.signal(number)
        wait_for_refusal(http)
        gateway.signal(number)
        assert list(events) == []
        assert_ended_well(gateway)


def test_a_client_that_does_not_read_keeps_no_gateway_from_its_end(
    valkey_url: str, flushed: Redis
) -> None:
    worker = PlayedWorker(flushed, "worker-0", MODEL)
    with (
        running(valkey_url, MINI_VLLM_STREAM_GRACE_S="0") as gateway,
        gateway.client() as http,
    ):
        submit(http)
        job_id = worker.take()
        worker.start(job_id)
        for index in range(40):
            worker.token(job_id, index, "x" * 500_000)
        with open_stream(http, job_id) as events:
            assert next(events)[0] == "start"
            gateway.signal(signal.SIGTERM)
            code, output = gateway.wait()
    assert code == 0, output


def test_with_nobody_following_it_ends_at_once(valkey_url: str, flushed: Redis) -> None:
    with running(valkey_url, **FOR_EVER) as gateway, gateway.client() as http:
        submit(http)
        gateway.signal(signal.SIGTERM)
        assert_ended_well(gateway)


@pytest.mark.parametrize("stream", [False, True])
def test_who_waits_for_a_completion_is_told_that_the_gateway_ends(
    valkey_url: str, flushed: Redis, stream: bool
) -> None:
    """Its job is for nobody then: who comes again, to another gateway, has another one."""
    worker = PlayedWorker(flushed, "worker-0", MODEL)
    body = {"prompt": "x", "stream": stream}
    with (
        running(valkey_url, MINI_VLLM_STREAM_GRACE_S="0") as gateway,
        gateway.client() as http,
        ThreadPoolExecutor(1) as pool,
    ):
        asked = pool.submit(http.post, "/v1/completions", json=body)
        job_id = worker.take()
        worker.start(job_id)
        worker.token(job_id, 0, "a")
        if stream:  # else its headers wait for what has come
            wait_for(lambda: flushed.hget(job_key(job_id), "count") == b"1", "it is written")
        gateway.signal(signal.SIGTERM)
        response = asked.result(timeout=20)
        assert_ended_well(gateway)
    assert "shutting_down" in response.text
    if stream:
        assert response.text.endswith("data: [DONE]\n\n")
    else:
        assert (response.status_code, response.headers["retry-after"]) == (503, "1")
    assert worker.emit(job_id, None) == {job_id: "cancelled"}
