"""A job's events over a real socket: live, resumed, shared, and over an outage of Redis."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from shared.connection import connect
from tests.gateway import PlayedWorker, RunningGateway
from tests.servers import Valkey, wait_for
from tests.service import sse_events

Event = tuple[str, str, dict[str, Any]]


def submit(http: httpx.Client) -> str:
    return str(http.post("/generate", json={"prompt": "x"}).json()["job_id"])


def parsed(response: httpx.Response) -> Iterator[Event]:
    for kind, event_id, data in sse_events(response):
        yield kind, event_id, json.loads(data)


@contextmanager
def following(
    http: httpx.Client, job_id: str, *, last_id: str | None = None, query: str = ""
) -> Iterator[Iterator[Event]]:
    headers = {} if last_id is None else {"Last-Event-ID": last_id}
    with http.stream("GET", f"/jobs/{job_id}/stream{query}", headers=headers) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["cache-control"] == "no-cache"
        assert response.headers["x-accel-buffering"] == "no"
        yield parsed(response)


def test_tokens_come_as_they_are_written(http: httpx.Client, worker: PlayedWorker) -> None:
    job_id = submit(http)
    with following(http, job_id) as events:
        worker.take()
        worker.start(job_id, 7)
        assert next(events) == ("start", "0", {"prompt_tokens": 7})
        worker.token(job_id, 0, "é\n")
        assert next(events) == ("token", "1", {"text": "é\n", "index": 0, "count": 1})
        worker.token(job_id, 1, "b c", count=3)
        assert next(events) == ("token", "4", {"text": "b c", "index": 1, "count": 3})
        worker.end(job_id, 4)
        kind, event_id, end = next(events)
        assert (kind, event_id) == ("end", "4.end")
        assert set(end) == {"status", "finish_reason", "usage", "timings", "error"}
        assert (end["status"], end["usage"]["completion_tokens"]) == ("completed", 4)
        assert next(events, None) is None


def test_an_ended_job_is_replayed_and_closed(http: httpx.Client, worker: PlayedWorker) -> None:
    job_id = submit(http)
    worker.play("a", "b", "c")
    with following(http, job_id) as events:
        kinds = [(kind, event_id) for kind, event_id, _ in events]
    expected = [("start", "0"), ("token", "1"), ("token", "2"), ("token", "3"), ("end", "3.end")]
    assert kinds == expected


@pytest.mark.parametrize("by_header", [True, False])
@pytest.mark.parametrize("seen", [0, 1, 2, 4])
def test_a_resumed_stream_has_no_gap_and_no_repeat(
    http: httpx.Client, worker: PlayedWorker, by_header: bool, seen: int
) -> None:
    job_id = submit(http)
    worker.play("a", "b", "c", "d")
    last_id = str(seen) if by_header else None
    query = "?from=1" if by_header else f"?from={seen}"
    with following(http, job_id, last_id=last_id, query=query) as events:
        ids = [event_id for _, event_id, _ in events]
    assert ids == [str(n) for n in range(seen + 1, 5)] + ["4.end"]


def test_a_bad_from_is_refused_also_where_last_event_id_decides(
    http: httpx.Client, worker: PlayedWorker
) -> None:
    job_id = submit(http)
    worker.play("a")
    headers = {"Last-Event-ID": "1"}
    for place in ("", "x", "-1"):
        response = http.get(f"/jobs/{job_id}/stream?from={place}", headers=headers)
        assert (response.status_code, response.json()["error"]["field"]) == (422, "from")
    assert http.get(f"/jobs/{job_id}/stream?from=0", headers=headers).status_code == 200


def test_a_dropped_stream_goes_on_while_the_job_runs(
    http: httpx.Client, worker: PlayedWorker, gateway: RunningGateway
) -> None:
    job_id = submit(http)
    worker.take()
    worker.start(job_id)
    worker.token(job_id, 0, "a")
    with following(http, job_id) as events:
        assert [next(events)[1] for _ in range(2)] == ["0", "1"]
    wait_for(lambda: gateway.num_followers == 0, "the gateway notices that the client left")
    worker.token(job_id, 1, "b")
    with following(http, job_id, last_id="1") as events:
        assert next(events)[1] == "2"
        worker.token(job_id, 2, "c")
        assert next(events)[1] == "3"
    assert worker.emit(job_id, None) == {}, "a client that leaves does not cancel the job"


def test_a_client_ahead_of_the_job_waits_for_what_it_has_not_seen(
    http: httpx.Client, worker: PlayedWorker
) -> None:
    job_id = submit(http)
    worker.take()
    with following(http, job_id, last_id="2") as events:
        worker.start(job_id)
        for index, text in enumerate("abc"):
            worker.token(job_id, index, text)
        assert next(events) == ("token", "3", {"text": "c", "index": 2, "count": 1})


def test_after_the_end_there_is_no_content(http: httpx.Client, worker: PlayedWorker) -> None:
    job_id = submit(http)
    worker.play("a")
    headers = {"Last-Event-ID": "1.end"}
    assert http.get(f"/jobs/{job_id}/stream", headers=headers).status_code == 204
    assert http.get(f"/jobs/{job_id}/stream?from=1.end").status_code == 204


def test_followers_share_a_job_and_late_ones_get_all_of_it(
    http: httpx.Client, worker: PlayedWorker, gateway: RunningGateway
) -> None:
    job_id = submit(http)
    worker.take()
    worker.start(job_id)
    with following(http, job_id) as first:
        worker.token(job_id, 0, "a")
        assert [next(first)[1] for _ in range(2)] == ["0", "1"]
        with gateway.client() as other, following(other, job_id) as second:
            worker.token(job_id, 1, "b")
            assert [next(second)[1] for _ in range(3)] == ["0", "1", "2"]
            assert gateway.num_followers == 2
            worker.end(job_id, 2)
            assert [e[1] for e in first] == ["2", "2.end"]
            assert [e[1] for e in second] == ["2.end"]
    wait_for(lambda: gateway.num_followers == 0, "followers leave")


def test_an_idle_stream_is_kept_open_with_comments(http: httpx.Client) -> None:
    job_id = submit(http)
    with http.stream("GET", f"/jobs/{job_id}/stream") as response:
        lines = response.iter_lines()
        assert [next(lines) for _ in range(4)] == [": keep-alive", "", ": keep-alive", ""]


def test_a_cancelled_queued_job_ends_its_stream(http: httpx.Client) -> None:
    job_id = submit(http)
    with following(http, job_id) as events:
        http.delete(f"/jobs/{job_id}")
        kind, event_id, end = next(events)
    assert (kind, event_id, end["status"]) == ("end", "0.end", "cancelled")


def test_a_stream_outlives_an_outage_of_redis(valkey: Valkey) -> None:
    gateway = RunningGateway(valkey.url)
    gateway.start()
    client = connect(valkey.url)
    try:
        worker = PlayedWorker(client, "worker-0", "smollm2")
        with gateway.client() as http:
            job_id = submit(http)
            worker.take()
            worker.start(job_id)
            worker.token(job_id, 0, "a")
            with following(http, job_id) as events:
                assert [next(events)[1] for _ in range(2)] == ["0", "1"]
                valkey.stop()
                client.close()
                valkey.start()
                worker.token(job_id, 1, "b")
                worker.end(job_id, 2)
                assert [event_id for _, event_id, _ in events] == ["2", "2.end"]
    finally:
        client.close()
        gateway.stop()


def test_a_job_that_redis_lost_ends_its_stream_without_an_end(valkey: Valkey) -> None:
    gateway = RunningGateway(valkey.url)
    gateway.start()
    try:
        with gateway.client() as http:
            job_id = submit(http)
            with following(http, job_id) as events:
                wait_for(lambda: gateway.num_followers == 1, "the client follows")
                valkey.kill()
                for file in (valkey.folder / "appendonlydir").iterdir():
                    file.unlink()
                valkey.start()
                assert list(events) == []
            assert http.get(f"/jobs/{job_id}").status_code == 404
    finally:
        gateway.stop()
