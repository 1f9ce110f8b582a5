"""``GET /live`` as watchers meet it."""

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from redis import Redis

from shared.connection import connect
from shared.keys import HISTORY, service_key
from tests.gateway import PlayedWorker, RunningGateway
from tests.gateway_process import running
from tests.integration.conftest import MODEL
from tests.integration.test_live_history import begin_earlier, write
from tests.servers import Valkey, wait_for
from tests.service import sse_events

KEYS = {"api_keys": "alice,bob", "admin_keys": "root", "metrics_key": "scrape"}


@pytest.fixture
def closed(valkey_url: str, flushed: Redis) -> Iterator[RunningGateway]:
    gateway = RunningGateway(valkey_url, **KEYS, sse_keepalive_s=0.2)
    yield gateway.start()
    gateway.stop()


class Watcher:
    def __init__(self, response: httpx.Response) -> None:
        self._events = sse_events(response)

    def next(self, kind: str) -> Any:
        """The next event of that kind."""
        for name, _, payload in self._events:
            if name == kind:
                return json.loads(payload)
        raise AssertionError(f"it ended without another {kind}")

    def first(self) -> tuple[Any, Any]:
        """The history and the view that everybody begins with."""
        events = [next(self._events) for _ in range(2)]
        assert [name for name, _, _ in events] == ["history", "view"]
        return json.loads(events[0][2]), json.loads(events[1][2])

    def rest(self) -> list[Any]:
        return list(self._events)


@contextmanager
def watching(url: str, key: str | None = None) -> Iterator[Watcher]:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    with (
        httpx.Client(base_url=url, timeout=20, headers=headers) as http,
        http.stream("GET", "/live") as response,
    ):
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        yield Watcher(response)


def submit(url: str, key: str | None = None) -> str:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    answer = httpx.post(f"{url}/generate", json={"prompt": "x"}, headers=headers)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["job_id"])


def test_a_view_is_what_the_routes_say(
    gateway: RunningGateway, http: httpx.Client, worker: PlayedWorker
) -> None:
    for _ in range(2):
        submit(gateway.url)
    worker.play("a", "b")
    with watching(gateway.url) as watcher:
        history, view = watcher.first()
    assert history == {"interval_s": 10, "points": []}
    metrics, pool = http.get("/metrics").json(), http.get("/workers").json()
    assert view["scope"] == "all"
    assert (view["model"], view["models"]) == (MODEL, [MODEL])
    assert view["jobs"] == http.get("/jobs").json()["jobs"]
    for shown in (view, pool):
        for row in shown["workers"]:
            assert row.pop("last_beat_s") >= 0
    assert {name: view[name] for name in pool} == pool
    assert view["running"] == metrics["jobs"]["running"]
    assert {row["priority"]: row["queued"] for row in view["queue"]} == {
        name: metrics["queue"][name] for name in ("high", "normal", "low", "suspect")
    }
    assert view["totals"] == {
        "completed": 1,
        "failed": 0,
        "cancelled": 0,
        "generated_tokens": metrics["total_tokens_generated"],
        "prompt_tokens": metrics["prompt_tokens_total"],
    }


def test_a_wait_is_told_from_what_jobs_took_of_late(
    gateway: RunningGateway, worker: PlayedWorker
) -> None:
    for _ in range(19):
        submit(gateway.url)
    worker.play("a")  # 1 s of the worker's time
    with watching(gateway.url) as watcher:
        _, view = watcher.first()
    waits_s = {row["priority"]: row["expected_wait_s"] for row in view["queue"]}
    # The worker reports 8 free slots: 18 - 8 + 1 jobs have to end, 8 of them each second.
    assert waits_s == {"high": 0.0, "normal": 1.4, "low": 1.4, "suspect": None}


def test_a_view_comes_when_something_has_happened(
    gateway: RunningGateway, worker: PlayedWorker
) -> None:
    with watching(gateway.url) as watcher:
        watcher.first()
        job_id = submit(gateway.url)
        view = watcher.next("view")
        assert [(job["job_id"], job["status"]) for job in view["jobs"]] == [(job_id, "queued")]
        worker.play("a")
        while view["jobs"][0]["status"] != "completed":
            view = watcher.next("view")
        assert view["totals"]["completed"] == 1


def test_a_feed_without_news_has_comments(gateway: RunningGateway, worker: PlayedWorker) -> None:
    with gateway.client() as http, http.stream("GET", "/live") as response:
        lines = response.iter_lines()
        comments = [next(line for line in lines if line.startswith(":")) for _ in range(3)]
    assert comments == [": keep-alive"] * 3


def test_a_key_sees_its_own_jobs_and_an_admin_all(closed: RunningGateway) -> None:
    mine, theirs = submit(closed.url, "alice"), submit(closed.url, "bob")
    with (
        watching(closed.url, "alice") as alice,
        watching(closed.url, "bob") as bob,
        watching(closed.url, "root") as root,
    ):
        seen = [watcher.first()[1] for watcher in (alice, bob, root)]
        assert [[job["job_id"] for job in view["jobs"]] for view in seen] == [
            [mine],
            [theirs],
            [theirs, mine],
        ]
        assert [view["scope"] for view in seen] == ["own", "own", "all"]
        for view in seen[:2]:
            hidden = [view[name] for name in ("workers", "failures", "warnings", "totals")]
            assert hidden == [None] * 4
        another = submit(closed.url, "alice")
        assert another in [job["job_id"] for job in alice.next("view")["jobs"]]
        assert [job["job_id"] for job in bob.next("view")["jobs"]] == [theirs], (
            "the queue is longer"
        )


def test_who_may_not_see_the_service_is_refused(closed: RunningGateway) -> None:
    def answer(key: str | None) -> tuple[int, str]:
        headers = {"X-API-Key": key} if key else {}
        response = httpx.get(f"{closed.url}/live", headers=headers)
        return response.status_code, response.json()["error"]["code"]

    assert answer(None) == answer("eve") == (401, "unauthorized")
    assert answer("scrape") == (403, "forbidden")


def test_what_it_does_not_take_is_refused_by_name(http: httpx.Client) -> None:
    response = http.get("/live?since=1")
    assert (response.status_code, response.json()["error"]["field"]) == (422, "since")
    assert http.post("/live").status_code == 405
    assert http.head("/live").status_code == 405
    # On the same connection: the answer has an end.
    assert http.get("/health").status_code == 200


def test_the_history_is_of_the_service_and_goes_on_over_gateways(
    valkey_url: str, flushed: Redis, gateway: RunningGateway, closed: RunningGateway
) -> None:
    write(valkey_url)
    begin_earlier(flushed, 10)
    write(valkey_url)
    with watching(gateway.url) as one, watching(closed.url, "alice") as another:
        (history, _), (same, _) = one.first(), another.first()
        assert len(history["points"]) >= 1
        assert history["points"] == same["points"][: len(history["points"])]
        begin_earlier(flushed, 10)
        write(valkey_url)
        assert one.next("point") == another.next("point")
        flushed.delete(HISTORY)
        assert one.next("history")["points"] == []


def test_all_watchers_share_one_reader_which_rests_without_them(
    gateway: RunningGateway, flushed: Redis
) -> None:
    def num_reads() -> int:
        stats: Any = flushed.info("commandstats")
        return int(stats.get("cmdstat_xrevrange", {}).get("calls", 0))

    board = gateway.app.state.gateway.board
    with watching(gateway.url) as watcher:
        watcher.first()
        alone = num_reads()
        for _ in range(2):
            submit(gateway.url)
            watcher.next("view")
        alone = num_reads() - alone
        with watching(gateway.url) as second, watching(gateway.url) as third:
            second.first(), third.first()
            assert board.num_watchers == 3
            together = num_reads()
            for _ in range(2):
                submit(gateway.url)
                watcher.next("view")
            assert num_reads() - together <= alone + 1
    wait_for(lambda: not board.num_watchers, "all are gone")
    assert not board._has_watchers.is_set()


def test_who_watches_without_redis_is_told_so_and_not_shown_what_was(valkey: Valkey) -> None:
    gateway = RunningGateway(valkey.url, model=MODEL, sse_keepalive_s=0.2).start()
    try:
        with watching(gateway.url) as watcher:
            watcher.first()
            valkey.stop()
            watcher.rest()
        refused = httpx.get(f"{gateway.url}/live")
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "redis_unavailable")
        valkey.start()
        client = connect(valkey.url)
        PlayedWorker(client, "worker-9", MODEL)
        client.close()
        with watching(gateway.url) as watcher:
            _, view = watcher.first()
        assert [worker["name"] for worker in view["workers"]] == ["worker-9"]
    finally:
        gateway.stop()


def test_what_stands_in_the_place_of_history_or_times_hides_nothing_else(
    gateway: RunningGateway, flushed: Redis
) -> None:
    flushed.set(service_key(MODEL), "x")
    flushed.set(HISTORY, "x")
    with watching(gateway.url) as watcher:
        history, view = watcher.first()
    assert history["points"] == [] and view["model"] == MODEL


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_gateway_that_stops_ends_its_feeds_and_keeps_nobody_waiting(
    valkey_url: str, flushed: Redis, number: signal.Signals
) -> None:
    with (
        running(valkey_url, MINI_VLLM_STREAM_GRACE_S="600") as gateway,
        watching(gateway.url) as watcher,
    ):
        watcher.first()
        gateway.signal(number)
        watcher.rest()
        code, output = gateway.wait()
        assert code == 0, output
        assert "Traceback" not in output


def test_a_gateway_that_drains_takes_no_watcher(valkey_url: str, flushed: Redis) -> None:
    with (
        running(valkey_url, MINI_VLLM_STREAM_GRACE_S="600") as gateway,
        gateway.client() as http,
        http.stream("GET", f"/jobs/{submit(gateway.url)}/stream"),
        watching(gateway.url) as watcher,
    ):
        watcher.first()
        gateway.signal(signal.SIGTERM)
        watcher.rest()
        response = httpx.get(f"{gateway.url}/live")
        assert (response.status_code, response.json()["error"]["code"]) == (503, "shutting_down")
        assert int(response.headers["retry-after"]) >= 1
        gateway.signal(signal.SIGTERM)
        code, output = gateway.wait()
    assert code == 0, output
