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

from api.complaints import Complaints
from api.job_reads import read_page
from api.keyring import Caller
from api.live.history import HistoryReader
from api.live.scope import Scope
from api.live.sight import SightReader
from shared.connection import RedisError
from shared.errors import ShuttingDown, Unavailable

log = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0
NUM_JOBS = 50


class Board:
    def __init__(self, reads: Redis, sights: SightReader, complaints: Complaints) -> None:
        self._reads = reads
        self._sights = sights
        self._complaints = complaints
        self._lock = asyncio.Lock()
        self._scopes: dict[str, Scope] = {}
        self._has_watchers = asyncio.Event()
        self._is_closed = False

    @property
    def history(self) -> HistoryReader:
        return self._sights.history

    @property
    def num_watchers(self) -> int:
        return sum(scope.num_watchers for scope in self._scopes.values())

    @asynccontextmanager
    async def watch(self, caller: Caller) -> AsyncIterator[Scope]:
        """With a view to begin with. Raises ``ShuttingDown``; Redis errors pass through."""
        if self._is_closed:
            raise ShuttingDown
        key = Scope.key_of(caller)
        scope = self._scopes.setdefault(key, Scope(caller))
        scope.num_watchers += 1
        try:
            if not scope.version:
                await self._look(scope)
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
        self._is_closed = True
        self._let_all_go()

    async def run(self) -> None:
        """For ever; idle while nobody watches. What cannot be read is not shown on as if it were so:
        those who watch are let go, and who comes again is told why."""
        is_failing = False
        while True:
            await self._has_watchers.wait()
            began_s = time.monotonic()
            try:
                await self._look(*self._scopes.values())
                is_failing = False
            except Exception as error:
                if not self._complaints.covers(error) and not is_failing:
                    is_expected = isinstance(error, RedisError | OSError | Unavailable)
                    log.warning("the board is not read: %r", error, exc_info=not is_expected)
                is_failing = True
                self._let_all_go()
            await asyncio.sleep(max(0.1, began_s + LOOK_EVERY_S - time.monotonic()))

    async def _look(self, *scopes: Scope) -> None:
        async with self._lock:
            sight = await self._sights.read()
            for scope in scopes:
                jobs, _ = await read_page(self._reads, NUM_JOBS, None, scope.caller)
                scope.show(sight, jobs)
        for scope in scopes:
            scope.tell()

    def _let_all_go(self) -> None:
        for scope in self._scopes.values():
            scope.let_go()
        self._scopes.clear()
        self._has_watchers.clear()
