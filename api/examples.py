"""What routes answer when all is well, as OpenAPI shows it. Plain data, whose models a test holds it to.

Without nulls: FastAPI leaves them out of its document.
"""

from typing import Any

JOB_ID = "4b355c02eb0340deb26bb6f248e1acc8"
CURSOR = f"1700000000000-{JOB_ID}"
CHAT_CALL_ID = f"chatcmpl-{JOB_ID}"
COMPLETION_CALL_ID = f"cmpl-{JOB_ID}"

ACCEPTED = {
    "job_id": JOB_ID,
    "status": "queued",
    "position": 1,
    "seed": 1,
    "links": {"job": f"/jobs/{JOB_ID}", "stream": f"/jobs/{JOB_ID}/stream"},
}

SUMMARY = {
    "job_id": JOB_ID,
    "status": "completed",
    "finish_reason": "stop",
    "usage": {"prompt_tokens": 33, "cached_tokens": 0, "completion_tokens": 38},
    "timings": {"queued_s": 0.001, "prefill_s": 0.389, "decode_s": 0.707, "total_s": 1.098},
    "seed": 1,
    "worker": "worker-1",
    "attempts": 1,
    "weights": {"format": "bf16", "fingerprint": "1f0c9a3be27d4456"},
    "priority": "normal",
    "cancelling": False,
    "created_at": "2026-01-01T12:00:00Z",
    "started_at": "2026-01-01T12:00:00.001000Z",
    "ended_at": "2026-01-01T12:00:01.098000Z",
}
JOB = SUMMARY | {"text": "Gravity is a fundamental concept in physics."}
CANCELLING = {
    **{name: value for name, value in JOB.items() if name not in ("finish_reason", "ended_at")},
    "status": "running",
    "cancelling": True,
}
PAGE = {"jobs": [SUMMARY], "next": CURSOR}

WORKER = {
    "name": "worker-1",
    "incarnation": "worker-1.8f3a",
    "pid": 4711,
    "host": "node-1",
    "cores": [1],
    "threads": 1,
    "model": "smollm2",
    "weights": {"format": "bf16", "fingerprint": "1f0c9a3be27d4456"},
    "state": "ready",
    "slots": 8,
    "slots_used": 1,
    "context_tokens": 4096,
    "batch_invariant": True,
    "kv_tokens_used": 612,
    "kv_usage": 0.0187,
    "tokens_per_s": 53.3,
    "read_gb_per_s": 5.223,
    "throttled_periods": 0,
    "cpu_periods": 0,
    "prefill_tokens_per_s": 301.5,
    "host_dir_id": "0b5a63a6f2c1-1a-2",
    "num_snapshots": 3,
    "snapshot_bytes": 35_412_480,
    "memory_mb": 310.5,
    "cpu_percent": 99.1,
    "jobs_held": 1,
    "last_beat_s": 0.4,
}
FAILURE = {
    "name": "worker-2",
    "host": "node-2",
    "model": "smollm2",
    "message": "MINI_VLLM_THREADS (--threads) is 8, but only 4 cores are usable here",
    "at": 1767268800.5,
}
WORKERS = {"workers": [WORKER], "failures": [FAILURE], "warnings": []}

_TOTALS = {
    "jobs_completed": 12,
    "generated_tokens": 456,
    "prompt_tokens": 396,
    "cache_queries": 12,
    "cache_hits": 9,
}


def _latency(count: int, avg: float, p50: float, p90: float, p99: float) -> dict[str, float]:
    return {"count": count, "avg_s": avg, "p50_s": p50, "p90_s": p90, "p99_s": p99}


METRICS = {
    "total_requests": 12,
    "avg_latency_sec": 1.098,
    "tokens_per_sec_avg": 53.3,
    "total_tokens_generated": 456,
    "memory_mb": 371.2,
    "cpu_percent": 101.4,
    "jobs": {"queued": 1, "running": 1, "completed": 12, "failed": 0, "cancelled": 0},
    "queue": {"high": 0, "normal": 1, "low": 0, "suspect": 0, "depth": 1},
    "prompt_tokens_total": 396,
    "webhooks": {"delivered": 3, "dropped": 0},
    "latencies": {
        "ttft": _latency(12, 0.212, 0.19, 0.44, 0.494),
        "itl": _latency(444, 0.0191, 0.0177, 0.0239, 0.0487),
        "e2e": _latency(12, 1.098, 0.9, 1.8, 1.98),
        "queue": _latency(12, 0.02, 0.15, 0.27, 0.297),
        "prefill": _latency(12, 0.19, 0.15, 0.27, 0.297),
        "decode": _latency(12, 0.88, 0.86, 1.4, 1.49),
        "step": _latency(301, 0.0187, 0.0175, 0.0285, 0.0481),
    },
    "finish_reasons": {"length": 2, "stop": 10},
    "refused": {"queue_full": 1},
    "worker_deaths": 0,
    "recovered_jobs": 0,
    "prefix_cache": {
        "queries": 12,
        "hits": 9,
        "prompt_tokens": 396,
        "tokens_saved": 279,
        "hit_rate_tokens": 0.7045,
        "seconds_saved": 0.925,
        "restore_ms_avg": 1.2,
        "resumed_tokens": 0,
        "snapshots": 3,
        "bytes": 35_412_480,
        "written": 3,
        "bytes_written": 35_412_480,
        "evictions": 0,
        "refused": 0,
    },
    "preemptions": 0,
    "parked": 0,
    "gateway": {"memory_mb": 60.7, "cpu_percent": 2.3},
    "workers": [WORKER | {"totals": _TOTALS}],
}
METRICS_TEXT = """\
# HELP mini_vllm_generation_tokens_total Tokens that were generated.
# TYPE mini_vllm_generation_tokens_total counter
mini_vllm_generation_tokens_total{model_name="smollm2"} 456.0
"""

POINT = {
    "at": 1767268800.002,
    "tokens_per_s": 53.3,
    "prompt_tokens_per_s": 31.2,
    "requests_per_s": 0.4,
    "errors_per_s": 0.0,
    "running": 1,
    "queued": 1,
    "ttft_p50_s": 0.19,
    "ttft_p90_s": 0.44,
    "ttft_p99_s": 0.494,
    "itl_p50_s": 0.0177,
    "itl_p90_s": 0.0239,
    "itl_p99_s": 0.0487,
    "e2e_p50_s": 0.9,
    "e2e_p90_s": 1.8,
    "e2e_p99_s": 1.98,
}


def _queue(priority: str, queued: int, wait_s: float | None) -> dict[str, Any]:
    return {"priority": priority, "queued": queued, "expected_wait_s": wait_s}


VIEW: dict[str, Any] = {
    "at": 1767268805.1,
    "scope": "all",
    "model": "smollm2",
    "models": ["smollm2"],
    "workers": [WORKER],
    "failures": [FAILURE],
    "warnings": [],
    "queue": [
        _queue("high", 0, 0.0),
        _queue("normal", 1, 0.3),
        _queue("low", 0, 0.3),
        _queue("suspect", 0, None),
    ],
    "running": 1,
    "jobs": [SUMMARY],
    "totals": {
        "completed": 12,
        "failed": 0,
        "cancelled": 0,
        "generated_tokens": 456,
        "prompt_tokens": 396,
    },
    "reports": [],
}

MODEL = {
    "id": "smollm2",
    "object": "model",
    "created": 0,
    "owned_by": "mini-vllm",
    "context_tokens": 4096,
    "workers": 1,
    "ready": 1,
    "is_default": True,
    "calls_tools": False,
}
MODELS = {"object": "list", "data": [MODEL]}

_USAGE = {
    "prompt_tokens": 33,
    "completion_tokens": 9,
    "total_tokens": 42,
    "prompt_tokens_details": {"cached_tokens": 0},
}
CHAT_COMPLETION = {
    "id": CHAT_CALL_ID,
    "object": "chat.completion",
    "created": 1767268800,
    "model": "smollm2",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Gravity is a fundamental concept."},
            "finish_reason": "stop",
        }
    ],
    "usage": _USAGE,
}
COMPLETION = {
    "id": COMPLETION_CALL_ID,
    "object": "text_completion",
    "created": 1767268800,
    "model": "smollm2",
    "choices": [{"index": 0, "text": " Paris.", "finish_reason": "stop"}],
    "usage": _USAGE,
}

DESCRIPTION = {
    "name": "mini-vllm",
    "version": "0.1.0",
    "model": "smollm2",
    "routes": {"POST /generate": "submit a job"},
}
TOKENS = {"tokens": [504, 3362]}
CONTENT = {"content": "The sea"}
PROMPT = {"prompt": "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"}

ALIVE = {"status": "alive"}
LOG_LEVEL = {"level": "debug"}
READY = {"status": "ready", "workers_ready": 1}


def shown(example: dict[str, Any], **more: Any) -> dict[str, Any]:
    """For ``responses`` of a route."""
    return {"content": {"application/json": {"example": example}}, **more}
