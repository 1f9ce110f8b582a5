from typing import Any

from api.fleet import make_fleet
from api.metrics_view import metrics_of
from shared.protocol import WorkerReport, WorkerState, to_wire

NOW = (10, 500_000)


def report(name: str, **fields: Any) -> bytes:
    made = WorkerReport(
        name=name,
        incarnation=name + ".1",
        pid=1,
        host="h",
        model="m",
        state=WorkerState.READY,
        memory_mb=100,
        cpu_percent=25,
        **fields,
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


def test_a_worker_without_a_report_still_counts() -> None:
    replies = [NOW, [], {}, 0, 0, 0, 0, totals(generated_tokens=5), {}, 1, 0]
    fleet = make_fleet(["x"], replies)
    assert fleet.workers == ()
    assert fleet.totals.generated_tokens == 5


def test_depths_are_those_of_all_models_together() -> None:
    fleet = make_fleet([], [NOW, [], {}, 1, 2, 3, 4, 10, 20, 30, 40], num_models=2)
    assert fleet.depths == {"high": 11, "normal": 22, "low": 33, "suspect": 44}
