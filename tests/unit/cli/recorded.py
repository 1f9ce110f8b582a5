"""What gateways said once, to be changed where a test needs it otherwise."""

from typing import Any

NOW_S = 1_767_268_860.0  # 2026-01-01 12:01:00 UTC
JOB_ID = "4b355c02eb0340deb26bb6f248e1acc8"


def job(**changes: Any) -> dict[str, Any]:
    """One that has completed; as in ``GET /jobs``."""
    return {
        "job_id": JOB_ID,
        "status": "completed",
        "finish_reason": "stop",
        "usage": {"prompt_tokens": 33, "cached_tokens": 0, "completion_tokens": 38},
        "timings": {
            "queued_s": 0.5,
            "prefill_s": 0.5,
            "decode_s": 1.0,
            "ttft_s": 1.0,
            "total_s": 2.0,
            "tokens_per_s": 38.0,
        },
        "seed": 1,
        "worker": "worker-1",
        "attempts": 1,
        "weights": {"format": "bf16", "fingerprint": "1f0c9a3be27d4456"},
        "error": None,
        "priority": "normal",
        "cancelling": False,
        "created_at": "2026-01-01T12:00:58Z",
        "started_at": "2026-01-01T12:00:58.500000Z",
        "ended_at": "2026-01-01T12:01:00Z",
        "user": None,
    } | changes


def running(**timings: float) -> dict[str, Any]:
    """Submitted 4 s ago."""
    return job(
        status="running",
        finish_reason=None,
        timings={"queued_s": None, "ttft_s": None, "total_s": None} | timings,
        created_at="2026-01-01T12:00:56Z",
        ended_at=None,
    )


def worker(name: str = "worker-0", **changes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "incarnation": f"{name}.8f3a",
        "host": "node-1",
        "cores": [0],
        "threads": 1,
        "model": "smollm2",
        "state": "ready",
        "slots": 8,
        "slots_used": 3,
        "tokens_per_s": 153.3,
        "kv_usage": 0.21,
        "memory_mb": 310.5,
        "cpu_percent": 99.1,
        "cpu_periods": 0,
        "throttled_periods": 0,
    } | changes


def queue(**changes: tuple[int, float | None]) -> list[dict[str, Any]]:
    """(queued, expected wait) by priority."""
    rows: dict[str, tuple[int, float | None]] = {
        "high": (0, 0.0),
        "normal": (0, 0.0),
        "low": (0, 0.0),
        "suspect": (0, None),
    }
    return [
        {"priority": name, "queued": queued, "expected_wait_s": wait_s}
        for name, (queued, wait_s) in (rows | changes).items()
    ]


def view(**changes: Any) -> dict[str, Any]:
    return {
        "at": NOW_S,
        "scope": "all",
        "model": "smollm2",
        "models": ["smollm2"],
        "workers": [worker("worker-0"), worker("worker-1", slots_used=1)],
        "failures": [],
        "warnings": [],
        "queue": queue(),
        "running": 4,
        "jobs": [job()],
        "totals": {"completed": 12, "failed": 0, "cancelled": 0},
        "reports": [],
    } | changes


def point(age_s: float, **changes: Any) -> dict[str, Any]:
    return {
        "at": NOW_S - age_s,
        "tokens_per_s": 200.0,
        "requests_per_s": 2.0,
        "errors_per_s": 0.0,
        "running": 4,
        "queued": 0,
        "ttft_p50_s": 0.2,
        "ttft_p99_s": 0.9,
    } | changes
