"""One reader per gateway for every stream that a client follows, over one connection.

It blocks on two keys: the news, which name the jobs that have new events, and its own bell, for who
joins. Then it reads those jobs' streams, from explicit ids: nothing is lost while Redis is away, and
a thousand followers of jobs that wait cost nothing. A job's events are kept once, for as long as
somebody follows it, and rendered once, when the first one wants frames.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from redis.asyncio import Redis

from api.complaints import Complaints
from api.followed_job import FollowedJob
from shared.connection import RedisError, ResponseError
from shared.keys import NEWS, job_key, stream_key, wake_key
from shared.logs import about

log = logging.getLogger(__name__)

BLOCK_MS = 5_000
#: Entries of one stream in one reply.
_MAX_ENTRIES = 2_000
#: Streams in one reading.
_MAX_STREAMS = 200
READ_ALL_EVERY_S = 5.0
_WAKE_TTL_S = 60
_MIN_PAUSE_S, _MAX_PAUSE_S = 0.05, 1.0


class Hub:
    """``client`` is the hub's own; its timeout must be longer than ``BLOCK_MS``."""

    def __init__(
        self, client: Redis, waker: Redis, gateway_id: str, complaints: Complaints
    ) -> None:
        self._client = client
        self._waker = waker
        self._complaints = complaints
        self._wake_key = wake_key(gateway_id)
        self._wake_cursor: bytes | str = "0-0"
        self._ring: asyncio.Task[None] | None = None
        self._is_woken = False  #: since the reading began
        self._news_cursor: bytes | str | None = None
        self._read_all_s = 0.0
        self._stale: set[str] = set()  #: ids of jobs whose streams may hold more than was read
        self._jobs: dict[str, FollowedJob] = {}
        self._is_closed = False

    @asynccontextmanager
    async def follow(self, job_id: str) -> AsyncIterator[FollowedJob]:
        """The caller has seen that the job exists."""
        job = self._jobs.get(job_id)
        is_new = job is None or (job.is_over and not job.has_ended)
        if job is None or is_new:
            job = self._jobs[job_id] = FollowedJob(job_id)
            job.is_over = self._is_closed
            self._stale.add(job_id)
        job.num_followers += 1
        try:
            if is_new:
                self._wake()
            yield job
        finally:
            job.num_followers -= 1
            if not job.num_followers and self._jobs.get(job_id) is job:
                del self._jobs[job_id]

    @property
    def num_followers(self) -> int:
        return sum(job.num_followers for job in self._jobs.values())

    def close(self) -> None:
        """The gateway stops: streams end where they are, and their clients resume later."""
        self._is_closed = True
        for job in self._jobs.values():
            job.finish()

    async def run(self) -> None:
        pause_s, is_down = _MIN_PAUSE_S, False
        while True:
            try:
                if is_down:
                    await self._close_missing()
                    # The news of the outage may be lost, and a new Redis counts anew.
                    self._news_cursor = None
                    self._stale.update(self._jobs)
                await self._read()
                if is_down:  # not before it has been read: PING is allowed to more than reading is
                    log.info("Redis answers again")
                    pause_s, is_down = _MIN_PAUSE_S, False
            except Exception as error:
                if not self._complaints.covers(error) and not is_down:
                    is_expected = isinstance(error, RedisError | OSError)
                    log.warning("cannot read streams: %r", error, exc_info=not is_expected)
                is_down = True
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, _MAX_PAUSE_S)

    def _wake(self) -> None:
        """Has the next XREAD take in who joined; if Redis is down, it will be a new one anyway. The
        ringing is the hub's own: a follower that leaves meanwhile takes it from nobody else."""
        if not self._is_woken:
            self._is_woken = True
            self._ring = asyncio.create_task(self._ring_bell())

    async def _ring_bell(self) -> None:
        try:
            async with self._waker.pipeline(transaction=False) as pipe:
                pipe.xadd(self._wake_key, {"w": ""}, maxlen=1, approximate=False)
                pipe.expire(self._wake_key, _WAKE_TTL_S)
                await pipe.execute()
        except Exception as error:
            self._is_woken = False
            log.debug("the hub's bell was not rung: %r", error)

    async def _read(self) -> None:
        """Waits for news, unless there is something to read already; then reads it."""
        self._is_woken = False
        if self._news_cursor is None:
            self._news_cursor = await self._latest_news()
        # A hub that lags behind could miss news that were cut off: now and then all are read.
        now_s = asyncio.get_running_loop().time()
        if now_s - self._read_all_s >= READ_ALL_EVERY_S:
            await self._close_missing()
            self._stale.update(self._jobs)
            self._read_all_s = now_s
        cursors: dict[Any, Any] = {NEWS: self._news_cursor, self._wake_key: self._wake_cursor}
        wait_ms = None if self._stale else BLOCK_MS
        reply: Any = await self._client.xread(cursors, count=_MAX_ENTRIES, block=wait_ms)
        for key, entries in reply or ():
            if key == self._wake_key.encode():
                self._wake_cursor = entries[-1][0]
                continue
            self._news_cursor = entries[-1][0]
            for _, fields in entries:
                told = (job_id.decode() for job_id in fields[b"j"].split())
                self._stale.update(job_id for job_id in told if job_id in self._jobs)
        while self._stale:
            await self._read_streams([self._stale.pop() for _ in range(self._num_next)])

    @property
    def _num_next(self) -> int:
        return min(len(self._stale), _MAX_STREAMS)

    async def _latest_news(self) -> bytes | str:
        reply: Any = await self._client.xrevrange(NEWS, count=1)
        return reply[0][0] if reply else "0-0"

    async def _read_streams(self, job_ids: list[str]) -> None:
        followed = [self._jobs[job_id] for job_id in job_ids if job_id in self._jobs]
        jobs = {stream_key(j.job_id).encode(): j for j in followed if not j.is_over}
        if not jobs:
            return
        try:
            cursors: dict[Any, Any] = {key: job.cursor for key, job in jobs.items()}
            reply: Any = await self._client.xread(cursors, count=_MAX_ENTRIES)
        except ResponseError as error:
            if len(jobs) == 1:
                (job,) = jobs.values()
                words = "job %s: its stream cannot be read: %s"
                log.error(words, job.job_id, error, extra=about(job=job.job_id))
                job.finish()
            for job in jobs.values() if len(jobs) > 1 else ():  # the others are not to suffer
                await self._read_streams([job.job_id])
            return
        except BaseException:
            self._stale.update(job_ids)
            raise
        for key, entries in reply:
            job = jobs[key]
            for entry_id, fields in entries:
                job.add(entry_id, fields)
            job.notify()
            if len(entries) == _MAX_ENTRIES:
                self._stale.add(job.job_id)

    async def _close_missing(self) -> None:
        """A job that Redis has lost ends its streams, so that clients ask and are told."""
        jobs = [job for job in self._jobs.values() if not job.is_over]
        async with self._client.pipeline(transaction=False) as pipe:
            pipe.ping()
            for job in jobs:
                pipe.exists(job_key(job.job_id))
            replies = await pipe.execute()
        for job, is_there in zip(jobs, replies[1:], strict=True):
            if not is_there:
                job.finish()
