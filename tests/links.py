"""Jobs and workers without an engine: what the broker, the scripts and the link do on a real Valkey."""

import time
from collections.abc import Callable
from time import monotonic
from typing import Any

from redis import Redis

from shared.admission import Limits
from shared.broker import Broker
from shared.keys import SERVED, SERVICE_TOTALS, job_key, stream_key
from shared.metrics import Totals
from shared.protocol import (
    EndEvent,
    FinishReason,
    GenerateRequest,
    JobStatus,
    Timings,
    TokenEvent,
    Usage,
    WorkerReport,
    WorkerState,
    to_wire,
)
from shared.recovery import Sweeper
from shared.scripts import run_script
from shared.stream import Entry, JobRecord, Transcript, read_transcript
from worker.link import Link, Popped

MODEL = "test-model"
TTL_S = 3600


def serve(redis: Redis, model: str = MODEL) -> None:
    """As if a worker had beaten a moment ago."""
    redis.hset(SERVED, model, int(time.time() * 1000))


def make_broker(redis: Redis, model: str = MODEL, **limits: int) -> Broker:
    defaults = {"max_queued_jobs": 1000, "max_queued_chars": 10_000, "max_owner_jobs": 0}
    return Broker(redis, model, TTL_S, Limits(**defaults | {"worker_grace_ms": 60_000} | limits))


def make_link(
    redis: Redis,
    name: str,
    slots: int = 4,
    patience: int = 16,
    clock: Callable[[], float] = monotonic,
) -> Link:
    report = WorkerReport(
        name=name, incarnation=name, pid=1, host="h", model=MODEL, state=WorkerState.READY
    )
    run_script(redis, "register", name, 60_000, to_wire(report), MODEL)
    return Link(
        redis,
        incarnation=name,
        model=MODEL,
        slots=slots,
        result_ttl_s=TTL_S,
        patience=patience,
        may_wait=lambda: False,
        clock=clock,
    )


def submit(broker: Broker, owner: str = "", **fields: Any) -> str:
    request = GenerateRequest.model_validate({"prompt": "x"} | fields)
    return broker.submit(request, owner=owner).job_id


def pop(link: Link, held: list[str] | None = None, want: int = 1) -> list[Popped]:
    return link.exchange([], held or [], want)[1]


def token(index: int, text: str = "a", attempt: int = 1) -> TokenEvent:
    return TokenEvent(index=index, tokens=(ord(text),), text=text, attempt=attempt)


def end(status: JobStatus = JobStatus.COMPLETED, tokens: int = 1) -> EndEvent:
    return EndEvent(
        status=status,
        finish_reason=FinishReason.STOP,
        usage=Usage(completion_tokens=tokens),
        timings=Timings(),
        seed=1,
        worker="w",
        attempts=1,
    )


def transcript(redis: Redis, job_id: str) -> Transcript:
    return read_transcript(redis.xrange(stream_key(job_id)))  # type: ignore[arg-type]


def record(redis: Redis, job_id: str) -> JobRecord:
    found = JobRecord.from_hash(redis.hgetall(job_key(job_id)))  # type: ignore[arg-type]
    assert found
    return found


def bury(redis: Redis, name: str, max_deaths: int = 3) -> list[str] | None:
    sweeper = Sweeper(heartbeat_ttl_s=4, max_deaths=max_deaths, result_ttl_s=TTL_S)
    return sweeper.bury(redis, name, only_if_lapsed=False)


def total(redis: Redis, key: str = SERVICE_TOTALS) -> Totals:
    return Totals.from_hash(redis.hgetall(key))  # type: ignore[arg-type]


def finish(link: Link, popped: Popped) -> None:
    """One token, and the end."""
    entries = [
        Entry(popped.job_id, popped.attempt, token(popped.count, attempt=popped.attempt)),
        Entry(popped.job_id, popped.attempt, end(), busy_ms=1000),
    ]
    assert link.exchange(entries, [popped.job_id], 0) == ({}, [])
