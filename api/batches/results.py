"""What has come of the jobs of a batch: whether they have ended, and then what they said."""

from collections.abc import Iterable, Sequence
from typing import Any

from redis.asyncio import Redis

from shared.keys import job_key, jobs_key, stream_key
from shared.protocol import JobStatus
from shared.stream import Transcript, read_transcript

#: How long a job can still be read once its line is on record; nobody needs it any more.
_RELEASED_S = 600


async def read_statuses(reads: Redis, job_ids: Sequence[str]) -> dict[str, JobStatus | None]:
    """``None`` for a job that is not there, or damaged."""
    async with reads.pipeline(transaction=False) as pipe:
        for job_id in job_ids:
            pipe.hget(job_key(job_id), "status")
        replies = await pipe.execute()
    return {job_id: _status(raw) for job_id, raw in zip(job_ids, replies, strict=True)}


def _status(raw: Any) -> JobStatus | None:
    try:
        return JobStatus(raw.decode()) if raw else None
    except ValueError:
        return None


async def read_transcripts(reads: Redis, job_ids: Sequence[str]) -> list[Transcript]:
    async with reads.pipeline(transaction=False) as pipe:
        for job_id in job_ids:
            pipe.xrange(stream_key(job_id))
        return [read_transcript(entries) for entries in await pipe.execute()]


async def release_jobs(reads: Redis, job_ids: Iterable[str], owner: str) -> None:
    """They leave the lists of jobs, and soon Redis: 50,000 would hold its memory for a day."""
    async with reads.pipeline(transaction=False) as pipe:
        for job_id in job_ids:
            for key in (job_key(job_id), stream_key(job_id), f"rq:job:{job_id}"):
                pipe.expire(key, _RELEASED_S)
            for list_key in {jobs_key(""), jobs_key(owner)}:
                pipe.zrem(list_key, job_id)
        await pipe.execute()
