"""Reads what is the same for all who watch, at most twice a second however many come."""

import logging
import time
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import NoPermissionError
from starlette.concurrency import run_in_threadpool

from api.fleet import read_fleet
from api.live.history import HistoryReader
from api.live.reports import ReportLink, Reports
from api.live.view import Sight, mean_ms, queue_view, totals_view
from api.model_reads import ModelReader
from shared.connection import ResponseError
from shared.failures import read_failures
from shared.keys import service_key

log = logging.getLogger(__name__)

_FRESH_S = 0.5
_REPORTS_FRESH_S = 30.0


class SightReader:
    """Not for two callers at once."""

    def __init__(self, reads: Redis, model: str, models: ModelReader, reports: Reports) -> None:
        self._reads = reads
        self._model = model
        self._models = models
        self._reports = reports
        self.history = HistoryReader(reads)
        self._sight: Sight | None = None
        self._read_s = float("-inf")
        self._has_no_history = False
        self._links: list[ReportLink] = []
        self._links_read_s = float("-inf")

    async def read(self) -> Sight:
        """Redis errors pass through."""
        if self._sight is None or time.monotonic() - self._read_s >= _FRESH_S:
            self._sight = await self._read()
            await self._look_back(self._sight.at)
            self._read_s = time.monotonic()
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
            (seconds, micros), times = await pipe.execute(raise_on_error=False)
        return Sight(
            at=round(seconds + micros / 1e6, 3),
            model=self._model,
            models=list(await self._models.models()),
            queue=queue_view(fleet, self._model, mean_ms(_texts(times))),
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


def _texts(reply: Any) -> list[bytes]:
    """None of a key that holds something else."""
    if isinstance(reply, NoPermissionError):
        raise reply
    return reply if isinstance(reply, list) else []
