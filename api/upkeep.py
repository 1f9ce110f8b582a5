"""What a gateway does beside answering: buries dead workers, ends overdue jobs, drops what expired."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError
from starlette.concurrency import run_in_threadpool

from api.complaints import Complaints
from shared.broker import Broker
from shared.keys import OWNERS, job_key, jobs_key
from shared.logs import about
from shared.logs.losses import log_lost
from shared.recovery import Sweeper

log = logging.getLogger(__name__)

SWEEP_EVERY_S = 1.0
TIDY_EVERY_S = 60.0
_PAGE = 500


class Upkeep:
    def __init__(
        self,
        client: Redis,
        broker: Broker,
        sweeper: Sweeper,
        complaints: Complaints,
        *,
        result_ttl_s: int,
        follow_level: Callable[[Redis], None],
    ) -> None:
        self._client = client
        self._broker = broker
        self._sweeper = sweeper
        self._complaints = complaints
        self._result_ttl_s = result_ttl_s
        self._follow = follow_level
        self._tidied_s = float("-inf")
        self._failing: set[str] = set()

    async def run(self) -> None:
        while True:
            await run_in_threadpool(self.round, time.monotonic())
            await asyncio.sleep(SWEEP_EVERY_S)

    def round(self, now_s: float) -> None:
        """Blocking. ``now_s`` is monotonic. What fails keeps none of the rest from being done."""
        steps = [self._sweep, self._expire, self._follow_level]
        if now_s - self._tidied_s >= TIDY_EVERY_S:
            steps += [self._mend, self._broker.tidy_registries, self._forget_expired_jobs]
            self._tidied_s = now_s
        for step in steps:
            self._try(step)

    def _try(self, step: Callable[[], None]) -> None:
        name = step.__name__.strip("_")
        try:
            step()
            self._failing.discard(name)
        except Exception as error:
            if not self._complaints.covers(error) and name not in self._failing:
                is_expected = isinstance(error, RedisConnectionError | RedisTimeoutError)
                log.warning("upkeep: %s failed: %r", name, error, exc_info=not is_expected)
            self._failing.add(name)

    def _sweep(self) -> None:
        for incarnation, job_ids in self._sweeper.sweep(self._client).items():
            log_lost(incarnation, job_ids)

    def _expire(self) -> None:
        for job_id in self._broker.expire():
            log.info("job %s: its deadline passed in the queue", job_id, extra=about(job=job_id))

    def _follow_level(self) -> None:
        self._follow(self._client)

    def _mend(self) -> None:
        for job_id in self._broker.mend():
            words = "job %s: it was in no queue and on no worker"
            log.warning(words, job_id, extra=about(job=job_id))

    def _forget_expired_jobs(self) -> None:
        owners: Any = self._client.smembers(OWNERS)
        for owner in ["", *(name.decode(errors="replace") for name in owners)]:
            forget_expired_jobs(self._client, self._result_ttl_s, owner)
            if owner and not self._client.zcard(jobs_key(owner)):
                # NOTE: one that submits right now is added again with its next job.
                self._client.srem(OWNERS, owner)


def forget_expired_jobs(client: Redis, result_ttl_s: int, owner: str = "") -> int:
    """Takes jobs whose record is gone out of a list of jobs; says how many."""
    seconds, _ = client.time()
    oldest_ms, start, num_gone = (seconds - result_ttl_s) * 1000, 0, 0
    while True:
        page: Any = client.zrangebyscore(jobs_key(owner), "-inf", oldest_ms, start=start, num=_PAGE)
        job_ids = [member.decode(errors="replace") for member in page]
        with client.pipeline(transaction=False) as pipe:
            for job_id in job_ids:
                pipe.exists(job_key(job_id))
            there = pipe.execute()
        gone = [job_id for job_id, is_there in zip(job_ids, there, strict=True) if not is_there]
        if gone:
            client.zrem(jobs_key(owner), *gone)
        num_gone += len(gone)
        start += len(job_ids) - len(gone)
        if len(job_ids) < _PAGE:
            return num_gone
