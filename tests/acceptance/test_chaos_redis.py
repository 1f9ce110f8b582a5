"""Redis goes away or is full, the whole service goes down and comes back, two thousand jobs come at
once: what was accepted is answered as if nothing had been, and who cannot be served is told so.

When a fault strikes is drawn; `CHAOS_SEED` repeats a draw.
"""

import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from shared.connection import connect
from shared.keys import job_key
from tests.acceptance.ledger import Ledger
from tests.acceptance.undisturbed import undisturbed_crowd, undisturbed_texts, wait_for_moment
from tests.acceptance.victims import (
    assert_nothing_is_left,
    processes_of,
    stop_in_order,
    wait_for_workers,
)
from tests.servers import Valkey
from tests.service import Up, wait_until

pytestmark = pytest.mark.model

FLAGS = ("--workers", "2", "--threads", "1")
OUTAGES_S = (3.0, 25.0)
#: Longer than the TTL of a heartbeat; shorter and longer than the time until a command counts as failed.
PAUSES_S = (5.0, 12.0)
#: Longer than the TTL of a heartbeat, which a full Redis does not take.
FULL_S = 6.0
NUM_BURST_JOBS = 2000
NUM_BURST_CLIENTS = 50
TINY: dict[str, Any] = {"prompt": "Hi", "raw": True, "temperature": 0, "max_tokens": 1}


@pytest.fixture(scope="module")
def valkey() -> Iterator[Valkey]:
    server = Valkey(appendonly=True)
    try:
        yield server.start()
    finally:
        server.remove()


@pytest.fixture(scope="module")
def shared_up(tmp_path_factory: pytest.TempPathFactory, valkey: Valkey) -> Iterator[Up]:
    """It does not supervise its Redis: what happens to that is up to the tests."""
    up = Up(tmp_path_factory.mktemp("up"), *FLAGS, "--redis-url", valkey.url)
    try:
        undisturbed_texts(up.wait_ready())
        yield up
        stop_in_order(up)
    finally:
        up.stop()


@pytest.fixture
def up(shared_up: Up) -> Up:
    wait_for_workers(shared_up)
    return shared_up


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Up]]:
    """Starts `up` in one folder, as often as asked; ends what is left."""
    started: list[Up] = []

    def start_one(*flags: str, **environment: str) -> Up:
        started.append(Up(tmp_path, *FLAGS, *flags, **environment))
        return started[-1].wait_ready()

    yield start_one
    for up in started:
        up.stop()


def submit_tiny(http: httpx.Client, **changes: Any) -> httpx.Response:
    """Accepted, or refused with the time to come again."""
    response = http.post("/generate", json=TINY | changes)
    if response.status_code != 202:
        assert response.status_code in (429, 503), response.text
        assert int(response.headers["Retry-After"]) >= 1
        assert response.json()["error"]["message"]
    return response


@pytest.mark.parametrize("outage_s", OUTAGES_S)
def test_jobs_wait_until_a_killed_redis_is_back_and_submits_are_refused_meanwhile(
    up: Up, valkey: Valkey, chance: Random, outage_s: float
) -> None:
    with connect(valkey.url) as redis:
        # Without a sync in the background no write is put off, so none is answered before it is done.
        redis.config_set("appendfsync", "no")
    with up.client() as http, undisturbed_crowd(up) as crowd:
        wait_for_moment(crowd, chance, each=1)
        valkey.kill()
        end_s = time.monotonic() + outage_s
        while time.monotonic() < end_s:
            assert submit_tiny(http).status_code == 503
            time.sleep(0.1)
        valkey.start()
    assert set(crowd.attempts) == {1}, "a live worker lost its jobs"


@pytest.mark.parametrize("pause_s", PAUSES_S)
def test_a_redis_that_stood_still_costs_no_live_worker_its_jobs(
    up: Up, valkey: Valkey, chance: Random, pause_s: float
) -> None:
    """All heartbeats have lapsed when it goes on."""
    workers = wait_for_workers(up)
    with undisturbed_crowd(up) as crowd:
        wait_for_moment(crowd, chance, each=1)
        valkey.signal(signal.SIGSTOP)
        time.sleep(pause_s)
        valkey.signal(signal.SIGCONT)
    assert wait_for_workers(up) == workers, "a live worker was buried"
    with connect(valkey.url) as redis:
        deaths = [redis.hget(job_key(client.job_id), "deaths") for client in crowd.clients]
    assert set(deaths) == {b"0"}


def test_a_full_redis_refuses_submits_and_the_jobs_in_it_go_on_when_it_has_room(
    up: Up, valkey: Valkey, chance: Random
) -> None:
    with up.client() as http, connect(valkey.url) as redis, undisturbed_crowd(up) as crowd:
        wait_for_moment(crowd, chance, each=1)
        memory: Any = redis.info("memory")
        redis.config_set("maxmemory", memory["used_memory"] + 16_384)
        try:
            wait_until(lambda: submit_tiny(http).status_code != 202, 60, "Redis is full")
            # What comes and goes in its buffers must not make room again.
            redis.config_set("maxmemory", memory["used_memory"] // 2)
            end_s = time.monotonic() + FULL_S
            while time.monotonic() < end_s:
                answer = submit_tiny(http)
                assert answer.status_code != 202
                assert "does not answer" not in answer.text, "it does, but it is full"
                time.sleep(0.1)
        finally:
            redis.config_set("maxmemory", 0)
    assert set(crowd.attempts) == {1}, "a live worker lost its jobs"


def test_the_next_up_goes_on_where_a_killed_supervisor_was(
    start: Callable[..., Up], chance: Random
) -> None:
    up = start()
    with undisturbed_crowd(up) as crowd:
        wait_for_moment(crowd, chance)
        up.process.kill()
        up.wait()
        wait_until(lambda: not processes_of(up.folder), 30, "its children end with it")
        again = start("--port", up.url.rsplit(":", 1)[1])
    stop_in_order(again)


def test_the_next_up_goes_on_where_one_that_was_told_to_stop_was(
    start: Callable[..., Up], chance: Random
) -> None:
    up = start(MINI_VLLM_DRAIN_TIMEOUT_S="1")
    with undisturbed_crowd(up) as crowd:
        wait_for_moment(crowd, chance)
        up.signal(signal.SIGTERM)
        assert up.wait() == 0
        assert_nothing_is_left(up.folder)
        again = start("--port", up.url.rsplit(":", 1)[1])
    stop_in_order(again)


def test_a_burst_of_two_thousand_submits_is_accepted_or_refused_and_ends_once(up: Up) -> None:
    ledger = Ledger(up)
    limits = httpx.Limits(max_connections=NUM_BURST_CLIENTS)
    with (
        httpx.Client(base_url=up.url, timeout=120, limits=limits) as http,
        ThreadPoolExecutor(NUM_BURST_CLIENTS) as clients,
    ):
        answers = list(
            clients.map(
                lambda i: submit_tiny(http, max_tokens=1 + (i % 10 == 0)), range(NUM_BURST_JOBS)
            )
        )
    accepted = {a.json()["job_id"] for a in answers if a.status_code == 202}
    print(Counter(answer.status_code for answer in answers))
    ends = ledger.close()
    assert accepted
    assert set(ends) == accepted
    assert {end.status for end in ends.values()} == {"completed"}
