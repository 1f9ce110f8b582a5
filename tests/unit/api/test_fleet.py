from typing import Any

from api.fleet import make_fleet
from api.metrics_view import metrics_of
from shared.protocol import WorkerReport, WorkerState, to_wire

NOW = (10, 500_000)


def report(name: str, **fields: Any) -> bytes:
    facts: dict[str, Any] = {"state": WorkerState.READY, "memory_mb": 100, "cpu_percent": 25}
    made = WorkerReport(
        name=name, incarnation=name + ".1", pid=1, host="h", model="m", **(facts | fields)
    )
    return to_wire(made).encode()


def totals(**counts: int) -> dict[bytes, bytes]:
    return {name.encode(): str(count).encode() for name, count in counts.items()}


def test_metrics_add_up_service_and_workers() -> None:
    service = totals(jobs_completed=1, jobs_cancelled=1, e2e_ms=3000, ended_tokens=10, busy_ms=1000)
    one = totals(jobs_completed=2, jobs_failed=1, e2e_ms=2000, ended_tokens=20, busy_ms=2000)
    one |= totals(generated_tokens=25, prompt_tokens=8)
    replies = [NOW, [], service, 1, 2, 3, 4]
    replies += [one, {b"report": report("b"), b"beat_ms": b"10000"}, 1, 2]
    replies += [totals(generated_tokens=5), {b"report": report("a")}, 0, 1]
    fleet = make_fleet(["b.1", "a.1"], replies)
    assert [(w.name, w.state, w.last_beat_s) for w in fleet.workers] == [
        ("a", "lost", None),
        ("b", "ready", 0.5),
    ]
    metrics = metrics_of(fleet, gateway_memory_mb=50, gateway_cpu_percent=1)
    body = metrics.model_dump(mode="json")
    assert body["total_requests"] == 5
    assert body["avg_latency_sec"] == 1.0
    assert body["tokens_per_sec_avg"] == 10.0
    assert body["total_tokens_generated"] == 30
    assert body["memory_mb"] == 150, "a lost worker's last report counts no longer"
    assert body["cpu_percent"] == 26
    assert body["jobs"] == {
        "queued": 10,
        "running": 3,
        "completed": 3,
        "failed": 1,
        "cancelled": 1,
    }
    assert body["queue"] == {"high": 1, "normal": 2, "low": 3, "suspect": 4, "depth": 10}
    assert body["prompt_tokens_total"] == 8
    assert [w["totals"]["generated_tokens"] for w in body["workers"]] == [5, 25]


def test_what_prefixes_saved_is_over_all_workers_and_the_dead() -> None:
    service = totals(cache_queries=10, cache_hits=4, cache_restore_us=6000, cache_hit_tokens=100)
    one = totals(cache_queries=10, cache_hits=4, cache_restore_us=2000, cache_hit_tokens=200)
    service |= totals(cache_query_tokens=300, cache_saved_ms=500, preemptions=1)
    one |= totals(cache_query_tokens=300, cache_saved_ms=1000, preemptions=1, parked=3)
    replies = [NOW, [], service, 0, 0, 0, 0]
    replies += [one, {b"report": report("a"), b"beat_ms": b"10000"}, 1, 0]
    metrics = metrics_of(make_fleet(["a.1"], replies), gateway_memory_mb=0, gateway_cpu_percent=0)
    cache = metrics.prefix_cache
    assert (cache.queries, cache.hits, cache.tokens_saved) == (20, 8, 300)
    assert cache.hit_rate_tokens == 0.5
    assert cache.restore_ms_avg == 1.0
    assert cache.seconds_saved == 1.5
    assert (metrics.preemptions, metrics.parked) == (2, 3)


def test_snapshots_of_a_host_count_once_as_its_latest_beat_says() -> None:
    def beat(name: str, host: str, number: int, at: bytes, **fields: Any) -> list[Any]:
        kept = {"host_dir_id": host, "num_snapshots": number, "snapshot_bytes": 100 * number}
        return [{}, {b"report": report(name, **(kept | fields)), b"beat_ms": at}, 1, 0]

    replies = [NOW, [], {}, 0, 0, 0, 0]
    replies += beat("a", "one", 3, b"9000") + beat("b", "one", 4, b"10000")
    replies += beat("c", "two", 5, b"10000")
    replies += beat("d", "two", 0, b"10400", state=WorkerState.LOADING)
    replies += beat("e", "", 1, b"10000") + beat("f", "", 2, b"10000")
    fleet = make_fleet([f"{name}.1" for name in "abcdef"], replies)
    cache = metrics_of(fleet, gateway_memory_mb=0, gateway_cpu_percent=0).prefix_cache
    assert cache.snapshots == 4 + 5 + 1 + 2, "e and f are of a version that names no directory"
    assert cache.bytes == 1200


def test_a_worker_without_a_report_still_counts() -> None:
    replies = [NOW, [], {}, 0, 0, 0, 0, totals(generated_tokens=5), {}, 1, 0]
    fleet = make_fleet(["x"], replies)
    assert fleet.workers == ()
    assert fleet.totals.generated_tokens == 5


def test_depths_are_those_of_all_models_together() -> None:
    fleet = make_fleet([], [NOW, [], {}, 1, 2, 3, 4, 10, 20, 30, 40], ["a", "b"])
    assert fleet.depths == {"high": 11, "normal": 22, "low": 33, "suspect": 44}
