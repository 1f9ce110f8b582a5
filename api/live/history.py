"""The last hour in Redis: all gateways write it, one at a time, and each reads what any wrote.

A turn is the first write of a key named after its seconds. It saves work and no more: that no stretch
is counted twice, or lost when a gateway dies or freezes in its turn, is due to the sample, which is
watched from before the totals are read until the point stands.
"""

import asyncio
import logging
from collections import deque
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import NoPermissionError, ResponseError, WatchError

from api.complaints import Complaints
from api.fleet import read_fleet
from api.live.points import INTERVAL_S, MAX_POINTS, SPAN_S, Point, Sample, point_between
from shared.connection import RedisError
from shared.errors import Unavailable
from shared.keys import HISTORY, HISTORY_SAMPLE, history_turn_key

log = logging.getLogger(__name__)

_PAUSE_S = 1.0


class HistoryWriter:
    def __init__(self, reads: Redis, model: str, complaints: Complaints) -> None:
        self._reads = reads
        self._model = model
        self._complaints = complaints

    async def run(self) -> None:
        is_failing = False
        while True:
            try:
                await asyncio.sleep(await self._until_turn_s())
                await self.take_turn()
                is_failing = False
            except Exception as error:
                if not self._complaints.covers(error) and not is_failing:
                    is_expected = isinstance(error, RedisError | OSError | Unavailable)
                    log.warning("the history is not written: %r", error, exc_info=not is_expected)
                is_failing = True
                await asyncio.sleep(_PAUSE_S)

    async def take_turn(self) -> bool:
        """Whether it was this gateway's. Redis errors pass through."""
        bucket = int(await self._now_s()) // INTERVAL_S
        key = history_turn_key(bucket)
        if not await self._reads.set(key, "1", nx=True, px=3 * INTERVAL_S * 1000):
            return False
        return await self.write()

    async def write(self) -> bool:
        """Adds the point since the last sample. Not if another gateway did so meanwhile."""
        async with self._reads.pipeline(transaction=True) as pipe:
            await pipe.watch(HISTORY_SAMPLE)
            # NOTE: before the totals: what is read of them later is never less than the sample has.
            earlier = Sample.from_wire(await _text_at(pipe, HISTORY_SAMPLE))
            fleet = await read_fleet(self._reads, self._model)
            later = Sample.of(fleet, await self._now_s())
            queued = sum(fleet.depths.values())
            point = point_between(earlier, later, running=fleet.num_running, queued=queued)
            pipe.multi()  # type: ignore[no-untyped-call]
            pipe.set(HISTORY_SAMPLE, later.model_dump_json())
            if point:
                entry: dict[Any, Any] = {"p": point.model_dump_json()}
                pipe.xadd(HISTORY, entry, maxlen=MAX_POINTS, approximate=False)
            try:
                await pipe.execute()
            except WatchError:
                return False
        return True

    async def _until_turn_s(self) -> float:
        return INTERVAL_S - await self._now_s() % INTERVAL_S

    async def _now_s(self) -> float:
        seconds, micros = await self._reads.time()
        return float(seconds + micros / 1e6)


async def _text_at(pipe: Redis, key: str) -> bytes | None:
    """``None`` of what is no text: it will be written over."""
    try:
        raw: Any = await pipe.get(key)
    except NoPermissionError:
        raise
    except ResponseError:
        return None
    return None if raw is None else bytes(raw)


class HistoryReader:
    """What it read stays, so that a look costs one entry while there is nothing new. ``epoch`` changes
    when Redis no longer has what was read."""

    def __init__(self, reads: Redis) -> None:
        self._reads = reads
        self._last_id = ""
        self._now_s = 0.0
        self._points: deque[Point] = deque(maxlen=MAX_POINTS)
        self.epoch = 0
        self.num_read = 0  #: points, of this epoch

    async def look(self, now_s: float) -> None:
        """``now_s`` of Redis' clock. Redis errors pass through."""
        self._now_s = now_s
        reply: Any = await self._reads.xrevrange(HISTORY, count=1)
        latest_id = reply[0][0].decode() if reply else ""
        if latest_id == self._last_id:
            return
        if not latest_id or _order(latest_id) < _order(self._last_id):
            self._points.clear()
            self._last_id = ""
            self.epoch += 1
            self.num_read = 0
        begin = f"({self._last_id}" if self._last_id else "-"
        entries: Any = await self._reads.xrange(HISTORY, min=begin)
        for entry_id, fields in entries:
            self._last_id = entry_id.decode()
            point = Point.from_wire(fields.get(b"p"))
            if point:
                self._points.append(point)
                self.num_read += 1

    def points(self) -> list[Point]:
        """Of the last hour, oldest first."""
        return [point for point in self._points if abs(self._now_s - point.at) <= SPAN_S]

    def since(self, num_read: int) -> list[Point]:
        """What was read after the first ``num_read`` of the epoch."""
        num_new = min(len(self._points), self.num_read - num_read)
        return list(self._points)[len(self._points) - num_new :]


def _order(entry_id: str) -> tuple[int, int]:
    milliseconds, _, number = (entry_id or "0-0").partition("-")
    return int(milliseconds), int(number)
