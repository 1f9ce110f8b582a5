"""Reads jobs out of Redis: one with its events at one moment, or a page of the newest."""

import math
import re
from dataclasses import dataclass

from pydantic import ValidationError
from redis.asyncio import Redis
from starlette.concurrency import run_in_threadpool

from api.deps import Gateway, Reply
from api.job_view import JobSummary, JobView, end_of, summarize, view
from api.keyring import Caller, Role
from shared.errors import BadRequest, JobNotFound
from shared.keys import job_key, jobs_key, stream_key, webhook_key, worker_key
from shared.logs import note_job
from shared.protocol import JobStatus, WorkerReport
from shared.stream import JobRecord, Transcript, read_transcript
from shared.webhooks.deliveries import job_delivery_id, read_state

JOB_ID = re.compile(r"[0-9a-f]{32}")
CURSOR = re.compile(r"([0-9]{1,15})-([0-9a-f]{32})")


async def find_record(reads: Redis, job_id: str, caller: Caller) -> JobRecord:
    """Raises ``JobNotFound``, also for a job of somebody else."""
    reply: Reply = await reads.hgetall(job_key(check_job_id(job_id)))
    return _seen_by(caller, JobRecord.from_hash(reply))


def _seen_by(caller: Caller, record: JobRecord | None) -> JobRecord:
    if record is None or not caller.may_see(record.owner):
        raise JobNotFound()
    return record


async def read_job(gateway: Gateway, job_id: str, caller: Caller) -> JobView:
    """Raises ``JobNotFound``, also for a job of somebody else."""
    record, transcript = await read_events(gateway.reads, job_id, caller)
    position, worker, weights = None, None, None
    if record.status is JobStatus.QUEUED:
        position = await run_in_threadpool(gateway.broker.position, job_id, record.queue)
    elif record.status is JobStatus.RUNNING:
        report = await _report(gateway.reads, record.worker)
        worker, weights = (report.name, report.weights) if report else (None, None)
    summary = summarize(job_id, record, transcript.end, worker, weights)
    job = view(summary, transcript, position)
    if not record.webhook:
        return job
    delivery: Reply = await gateway.reads.hgetall(webhook_key(job_delivery_id(job_id)))
    return job.model_copy(update={"webhook": read_state(record.webhook, delivery)})


async def read_events(reads: Redis, job_id: str, caller: Caller) -> tuple[JobRecord, Transcript]:
    """A job at one moment. Raises ``JobNotFound``, also for a job of somebody else."""
    check_job_id(job_id)
    async with reads.pipeline(transaction=True) as pipe:
        pipe.hgetall(job_key(job_id))
        pipe.xrange(stream_key(job_id))
        raw, entries = await pipe.execute()
    record = _seen_by(caller, JobRecord.from_hash(raw))
    transcript = read_transcript(entries)
    transcript.end = transcript.end or end_of(raw)
    return record, transcript


def check_job_id(job_id: str) -> str:
    if not JOB_ID.fullmatch(job_id):
        raise JobNotFound()
    note_job(job_id)
    return job_id


async def _report(reads: Redis, incarnation: str) -> WorkerReport | None:
    report: Reply = await reads.hget(worker_key(incarnation), "report")
    try:
        return WorkerReport.model_validate_json(report) if report else None
    except ValidationError:
        return None


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place in the list of jobs: what follows is older, or as old with a smaller id."""

    created_ms: int
    job_id: str

    @classmethod
    def parse(cls, text: str) -> "Cursor":
        match = CURSOR.fullmatch(text)
        if match is None:
            raise BadRequest("before: must be `next` of another page", field="before")
        return cls(int(match[1]), match[2])

    @classmethod
    def of(cls, member: bytes, score: float) -> "Cursor | None":
        """``None`` for what is no job's."""
        job_id = member.decode(errors="replace")
        return (
            cls(int(score), job_id) if math.isfinite(score) and JOB_ID.fullmatch(job_id) else None
        )

    def __str__(self) -> str:
        return f"{self.created_ms}-{self.job_id}"

    def is_followed_by(self, created_ms: int, job_id: str) -> bool:
        return (created_ms, job_id) < (self.created_ms, self.job_id)


async def read_page(
    reads: Redis, limit: int, before: Cursor | None, caller: Caller
) -> tuple[list[JobSummary], Cursor | None]:
    """Newest first; with the place from where to go on, if there is more."""
    rows: list[JobSummary] = []
    last: Cursor | None = None
    key = jobs_key("" if caller.role is Role.ADMIN else caller.owner)
    offset, chunk = 0, limit + 1
    newest = "+inf" if before is None else before.created_ms
    while True:
        reply: Reply = await reads.zrevrangebyscore(
            key, newest, "-inf", start=offset, num=chunk, withscores=True
        )
        places = [p for member, score in reply if (p := Cursor.of(member, score))]
        fresh = [
            p for p in places if before is None or before.is_followed_by(p.created_ms, p.job_id)
        ]
        for place, summary in zip(fresh, await _summaries(reads, fresh), strict=True):
            if summary is None:  # it has expired; upkeep will drop it from the list
                continue
            if len(rows) == limit:
                return rows, last
            rows.append(summary)
            last = place
        if len(reply) < chunk:
            return rows, None
        offset += chunk


async def _summaries(reads: Redis, places: list[Cursor]) -> list[JobSummary | None]:
    async with reads.pipeline(transaction=False) as pipe:
        for place in places:
            pipe.hgetall(job_key(place.job_id))
        replies = await pipe.execute(raise_on_error=False)
    return [_summary(place.job_id, raw) for place, raw in zip(places, replies, strict=True)]


def _summary(job_id: str, raw: Reply) -> JobSummary | None:
    record = None if isinstance(raw, Exception) else JobRecord.from_hash(raw)
    if record is None:
        return None
    # An incarnation is the name and a suffix; one look-up per job would be too much here.
    return summarize(job_id, record, end_of(raw), record.worker.rsplit(".", 1)[0])
