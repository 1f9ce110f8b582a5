"""One reader per gateway for all who watch: it asks Redis once a second, and only while somebody does.

What all see is read once; jobs are read once for each key whose owner watches. A watcher that is slow
to read is shown the latest there is, and holds nothing up.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from redis.asyncio import Redis
from redis.exceptions import NoPermissionError
from starlette.concurrency import run_in_threadpool

from api.complaints import Complaints
from api.fleet import read_fleet
from api.job_reads import read_page
from api.keyring import Caller
from api.live.history import HistoryReader
from api.live.reports import ReportLink, Reports
from api.live.scope import Scope
from api.live.view import Sight, mean_ms, queue_view, totals_view
from api.model_reads import ModelReader
from shared.connection import RedisError, ResponseError
from shared.errors import ShuttingDown, Unavailable
from shared.failures import read_failures
from shared.keys import service_key

log = logging.getLogger(__name__)

FRESH_S = 1.0
NUM_JOBS = 50
_REPORTS_FRESH_S = 30.0


class Board:
    def __init__(
        self,
        reads: Redis,
        model: str,
        models: ModelReader,
        reports: Reports,
        complaints: Complaints,
    ) -> None:
        self._reads = reads
        self._model = model
        self._models = models
        self._reports = reports
        self._complaints = complaints
        self.history = HistoryReader(reads)
        self._lock = asyncio.Lock()
        self._scopes: dict[str, Scope] = {}
        self._has_watchers = asyncio.Event()
        self._sight: Sight | None = None
        self._seen_s = float("-inf")
        self._has_no_history = False
        self._links: list[ReportLink] = []
        self._links_read_s = float("-inf")
        self.is_closed = False

    @property
    def num_watchers(self) -> int:
        return sum(scope.num_watchers for scope in self._scopes.values())

    @asynccontextmanager
    async def watch(self, caller: Caller) -> AsyncIterator[Scope]:
        """With a view to begin with. Raises ``ShuttingDown``; Redis errors pass through."""
        if self.is_closed:
            raise ShuttingDown
        key = Scope.key_of(caller)
        scope = self._scopes.setdefault(key, Scope(caller))
        scope.num_watchers += 1
        try:
            if not scope.version:
                await self.look(scope)
            self._has_watchers.set()
            yield scope
        finally:
            scope.num_watchers -= 1
            if not scope.num_watchers and self._scopes.get(key) is scope:
                del self._scopes[key]
            if not self._scopes:
                self._has_watchers.clear()

    def close(self) -> None:
        """The gateway stops: whoever watches is let go, and comes again elsewhere. Again is harmless."""
        self.is_closed = True
        for scope in self._scopes.values():
            scope.tell()

    async def run(self) -> None:
        """For ever; idle while nobody watches."""
        is_failing = False
        while True:
            await self._has_watchers.wait()
            began_s = time.monotonic()
            try:
                await self.look(*self._scopes.values())
                is_failing = False
            except Exception as error:
                if not self._complaints.covers(error) and not is_failing:
                    is_expected = isinstance(error, RedisError | OSError | Unavailable)
                    log.warning("the board is not read: %r", error, exc_info=not is_expected)
                is_failing = True
            await asyncio.sleep(max(0.1, began_s + FRESH_S - time.monotonic()))

    async def look(self, *scopes: Scope) -> None:
        """Redis errors pass through."""
        async with self._lock:
            sight = await self._fresh_sight()
            for scope in scopes:
                jobs, _ = await read_page(self._reads, NUM_JOBS, None, scope.caller)
                scope.show(sight, jobs)
        for scope in scopes:
            scope.tell()

    async def _fresh_sight(self) -> Sight:
        """Of a burst of watchers the first one reads."""
        if self._sight is None or time.monotonic() - self._seen_s >= FRESH_S / 2:
            self._sight = await self._read()
            await self._look_back(self._sight.at)
            self._seen_s = time.monotonic()
        return self._sight

    async def _look_back(self, now_s: float) -> None:
        try:
            await self.history.look(now_s)
        except NoPermissionError:
            raise
        except ResponseError as error:  # it is no stream: that is to keep nobody from the rest
            if not self._has_no_history:
                log.warning("the history cannot be read: %s", error)
            self._has_no_history = True

    async def _read(self) -> Sight:
        fleet = await read_fleet(self._reads, self._model)
        async with self._reads.pipeline(transaction=False) as pipe:
            pipe.time()
            pipe.lrange(service_key(self._model), 0, -1)
            (seconds, micros), times = await pipe.execute()
        return Sight(
            at=round(seconds + micros / 1e6, 3),
            model=self._model,
            models=list(await self._models.models()),
            queue=queue_view(fleet, self._model, mean_ms(times)),
            running=fleet.num_running,
            workers=fleet.workers,
            failures=await read_failures(self._reads),
            totals=totals_view(fleet),
            reports=await self._report_links(),
        )

    async def _report_links(self) -> list[ReportLink]:
        if time.monotonic() - self._links_read_s >= _REPORTS_FRESH_S:
            self._links = await run_in_threadpool(self._reports.links)
            self._links_read_s = time.monotonic()
        return self._links
