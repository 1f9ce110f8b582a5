"""A job as the API shows it, made of our record of it and its events. Pure.

The terminal event is the truth about a job that has ended; the record fills in the rest.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime

from pydantic import BaseModel, ValidationError

from shared.protocol import (
    EndEvent,
    FinishReason,
    JobError,
    JobStatus,
    Priority,
    Timings,
    Usage,
    Weights,
)
from shared.stream import JobRecord, Transcript
from shared.webhooks.deliveries import DeliveryState


class JobSummary(BaseModel):
    """One line of ``GET /jobs``. ``worker`` and ``attempts`` are those of the last attempt."""

    job_id: str
    status: JobStatus
    finish_reason: FinishReason | None = None
    usage: Usage
    timings: Timings
    seed: int
    worker: str | None = None
    attempts: int
    weights: Weights | None = None  #: of a job that ended, or runs
    error: JobError | None = None
    priority: Priority
    cancelling: bool = False
    created_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    user: str | None = None  #: for whom it is, in the words of the client


class JobView(JobSummary):
    position: int | None = None  #: of a queued job: 1 is next
    text: str
    webhook: DeliveryState | None = None


def end_of(raw: Mapping[bytes, bytes]) -> EndEvent | None:
    """The terminal event as it stands in the record of a job."""
    try:
        return EndEvent.model_validate_json(raw[b"end"]) if b"end" in raw else None
    except ValidationError:
        return None


def summarize(
    job_id: str,
    record: JobRecord,
    end: EndEvent | None,
    worker_name: str | None = None,
    weights: Weights | None = None,
) -> JobSummary:
    """``worker_name`` of the worker that runs it, where the record has its incarnation, and its weights."""
    summary = JobSummary(
        job_id=job_id,
        status=record.status,
        usage=Usage(prompt_tokens=record.prompt_tokens or 0, completion_tokens=record.count),
        timings=_timings_so_far(record),
        seed=record.seed,
        worker=worker_name or record.worker or None,
        attempts=record.attempt,
        weights=weights,
        priority=Priority(record.queue.rsplit(":", 1)[-1]),
        cancelling=record.cancelling and end is None,
        created_at=_time(record.created_ms),
        started_at=None if record.started_ms is None else _time(record.started_ms),
        ended_at=None if record.ended_ms is None else _time(record.ended_ms),
        user=_user(record.note),
    )
    return summary if end is None else summary.model_copy(update=dict(end))


def note_of(user: str | None) -> str:
    """What the record keeps for the gateways, of a job that needs nothing else kept."""
    return "" if user is None else json.dumps({"user": user})


def _user(note: str) -> str | None:
    try:
        kept = json.loads(note) if note else None
    except ValueError:
        return None
    user = kept.get("user") if isinstance(kept, dict) else None
    return user if isinstance(user, str) else None


def view(summary: JobSummary, transcript: Transcript, position: int | None) -> JobView:
    return JobView(**dict(summary), text=transcript.text, position=position)


def _timings_so_far(record: JobRecord) -> Timings:
    def since_created_s(ms: int | None) -> float | None:
        return None if ms is None else max(0, ms - record.created_ms) / 1000

    return Timings(
        queued_s=since_created_s(record.started_ms), ttft_s=since_created_s(record.first_token_ms)
    )


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
