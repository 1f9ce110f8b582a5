"""What a worker counts by itself reaches the totals once, over lost beats, deaths and restarts."""

from collections.abc import Mapping

import httpx
import pytest
from redis import Redis

from shared.histograms import sum_field
from shared.keys import SERVICE_TOTALS, worker_totals_key
from shared.protocol import WorkerReport, WorkerState
from shared.recovery import Sweeper
from worker.heart import Heart, Pulse

SWEEPER = Sweeper(heartbeat_ttl_s=60, max_deaths=3, result_ttl_s=60)


class Beating:
    """A heart that beats when it is told to."""

    def __init__(self, client: Redis, incarnation: str, **facts: object) -> None:
        self.counted: dict[str, int] = {}
        report = WorkerReport(
            name=incarnation.split(".")[0],
            incarnation=incarnation,
            pid=1,
            host="h",
            model="smollm2",
            state=WorkerState.READY,
        ).model_copy(update=facts)
        self._client, self._incarnation = client, incarnation
        self.heart = Heart(
            client,
            report=lambda: report,
            pulse=Pulse(60),
            interval_s=3600,
            ttl_s=60,
            sweeper=SWEEPER,
            counts=self._counts,
        )
        self.heart.register()

    def _counts(self) -> Mapping[str, int]:
        return self.counted

    def bury(self) -> None:
        self.heart.stop()
        SWEEPER.bury(self._client, self._incarnation, only_if_lapsed=False)


def cache_of(http: httpx.Client) -> dict[str, float]:
    figures: dict[str, float] = http.get("/metrics").json()["prefix_cache"]
    return figures


def test_a_beat_that_is_sent_twice_counts_once(http: httpx.Client, flushed: Redis) -> None:
    worker = Beating(flushed, "w.1")
    worker.counted = {"cache_queries": 3, "cache_hits": 2}
    worker.heart.beat()
    worker.heart.beat()
    assert (cache_of(http)["queries"], cache_of(http)["hits"]) == (3, 2)
    worker.bury()


def test_what_a_lost_beat_carried_is_in_the_next_one(http: httpx.Client, flushed: Redis) -> None:
    worker = Beating(flushed, "w.1")
    worker.counted = {"cache_hit_tokens": 100}
    worker.counted = {"cache_hit_tokens": 250}  # Redis did not get the one before
    worker.heart.beat()
    assert cache_of(http)["tokens_saved"] == 250
    worker.bury()


def test_a_late_beat_takes_nothing_back(http: httpx.Client, flushed: Redis) -> None:
    worker = Beating(flushed, "w.1")
    worker.counted = {"cache_hits": 5}
    worker.heart.beat()
    worker.counted = {"cache_hits": 4}
    worker.heart.beat()
    assert cache_of(http)["hits"] == 5
    worker.bury()


def test_deaths_and_restarts_neither_lose_nor_repeat(http: httpx.Client, flushed: Redis) -> None:
    first = Beating(flushed, "w.1")
    first.counted = {"cache_queries": 3, "parked": 1, "snapshot_bytes_written": 10**10}
    first.heart.beat()
    first.bury()
    first.bury()
    first.heart.last_beat()  # of one that was declared dead: it counts nothing
    second = Beating(flushed, "w.2")
    second.counted = {"cache_queries": 4, "preemptions": 2}
    second.heart.beat()
    body = http.get("/metrics").json()
    assert body["prefix_cache"]["queries"] == 7
    assert body["prefix_cache"]["bytes_written"] == 10**10
    assert (body["parked"], body["preemptions"]) == (1, 2)
    assert body["workers"][0]["totals"]["cache_queries"] == 4
    second.bury()
    assert cache_of(http)["queries"] == 7
    assert flushed.hget(SERVICE_TOTALS, "cache_queries") == b"7"
    assert not flushed.exists(worker_totals_key("w.1"), worker_totals_key("w.2"))


def test_the_last_beat_has_what_was_counted_since_the_one_before(
    http: httpx.Client, flushed: Redis
) -> None:
    worker = Beating(flushed, "w.1")
    worker.heart.stop()
    worker.counted = {"resumed_tokens": 40}
    worker.heart.last_beat()
    worker.bury()
    assert cache_of(http)["resumed_tokens"] == 40


def test_a_last_beat_that_redis_refuses_is_told_and_does_not_keep_a_worker_from_leaving(
    flushed: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    worker = Beating(flushed, "w.1")
    flushed.set(worker_totals_key("w.1"), "no hash")
    worker.counted = {"cache_hits": 1}
    worker.heart.last_beat()
    assert "what was counted since the last heartbeat is lost" in caplog.text
    flushed.delete(worker_totals_key("w.1"))
    worker.bury()


def test_what_stands_in_the_totals_and_is_no_number_is_replaced(
    http: httpx.Client, flushed: Redis
) -> None:
    worker = Beating(flushed, "w.1")
    flushed.hset(worker_totals_key("w.1"), "cache_hits", "many")
    worker.counted = {"cache_hits": 1}
    worker.heart.beat()
    assert cache_of(http)["hits"] == 1
    worker.bury()


def test_what_a_host_keeps_is_shown_of_each_worker_and_counted_once(
    http: httpx.Client, flushed: Redis
) -> None:
    facts = {"host_dir_id": "h", "num_snapshots": 3, "snapshot_bytes": 3000}
    workers = [Beating(flushed, f"w-{i}.1", prefill_tokens_per_s=150.5, **facts) for i in range(2)]
    shown = http.get("/workers").json()["workers"]
    assert [w["num_snapshots"] for w in shown] == [3, 3]
    assert [w["prefill_tokens_per_s"] for w in shown] == [150.5, 150.5]
    assert (cache_of(http)["snapshots"], cache_of(http)["bytes"]) == (3, 3000)
    for worker in workers:
        worker.bury()


def test_a_sum_too_large_for_a_number_of_lua_outlives_its_worker(flushed: Redis) -> None:
    """Microseconds of a thousand jobs that wait for two weeks."""
    beating = Beating(flushed, "w.1")
    field, sum_us = sum_field("smollm2", "e2e"), 10**15 + 10**17
    flushed.hset(worker_totals_key("w.1"), mapping={field: sum_us + 1, "x": "no number"})
    beating.bury()
    assert flushed.hget(SERVICE_TOTALS, field) == str(sum_us + 1).encode()
