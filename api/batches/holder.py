"""Which batches this gateway runs: those that nobody holds, as many at once as it may."""

import asyncio
import logging
import time
from collections import Counter
from contextlib import suppress
from typing import Any

from starlette.concurrency import run_in_threadpool

from api.batches.lease import Lease
from api.batches.record import BATCH_ID, Batch, BatchStatus
from api.batches.run import BatchRun
from api.batches.slots import count_slots
from api.batches.tools import BatchTools
from api.batches.window import LEAST_JOBS, window_jobs
from shared.admission import Limits
from shared.connection import RedisError
from shared.keys import OPEN_BATCHES, batch_key, batch_lease_key
from shared.logs import about, concerning
from shared.scripts import run_script_async

log = logging.getLogger(__name__)

_LOOK_EVERY_S = 1.0
_COUNT_EVERY_S = 5.0


class BatchHolder:
    def __init__(self, tools: BatchTools) -> None:
        self.tools = self._tools = tools
        self._limits = Limits.from_settings(tools.settings)
        self._running: dict[str, asyncio.Task[None]] = {}
        self._owner_of: dict[str, str] = {}
        self._slots = LEAST_JOBS // 2
        self._counted_s = float("-inf")
        self._bell = asyncio.Event()

    def wake(self) -> None:
        """There is a batch that nobody holds yet."""
        self._bell.set()

    @property
    def window(self) -> int:
        """Jobs of each batch that may wait or run."""
        return window_jobs(self._slots, len(self._running), self._limits)

    async def run(self) -> None:
        is_down = False
        try:
            while True:
                self._bell.clear()
                try:
                    await self._round()
                    is_down = False
                except Exception as error:
                    if not is_down:
                        is_expected = isinstance(error, RedisError | OSError)
                        log.warning("no batches are taken: %r", error, exc_info=not is_expected)
                    is_down = True
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._bell.wait(), _LOOK_EVERY_S)
        finally:
            tasks = list(self._running.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _round(self) -> None:
        self._running = {i: task for i, task in self._running.items() if not task.done()}
        most = self._tools.settings.batch_max_running
        if self._running and time.monotonic() - self._counted_s > _COUNT_EVERY_S:
            self._slots = await count_slots(self._tools.reads)
            self._counted_s = time.monotonic()
        if len(self._running) >= most or self._tools.drain.is_requested:
            return
        for batch in await self._free_batches():
            if len(self._running) >= most:
                return
            if await self._is_runnable(batch):
                await self._claim(batch)

    async def _free_batches(self) -> list[Batch]:
        """The oldest of whom has the fewest in work comes first."""
        members: Any = await self._tools.reads.smembers(OPEN_BATCHES)
        ids = [member.decode(errors="replace") for member in members]
        ids = [i for i in ids if BATCH_ID.fullmatch(i) and i not in self._running]
        async with self._tools.reads.pipeline(transaction=False) as pipe:
            for batch_id in ids:
                pipe.exists(batch_lease_key(batch_id))
                pipe.hgetall(batch_key(batch_id))
            replies = await pipe.execute()
        found: list[Batch] = []
        for batch_id, is_held, raw in zip(ids, replies[::2], replies[1::2], strict=True):
            batch = None if is_held else Batch.from_hash(batch_id, raw)
            if batch is not None:
                found.append(batch)
            elif not is_held:
                await self._tools.reads.srem(OPEN_BATCHES, batch_id)  # gone, or damaged
        num_running = Counter(self._owner_of[batch_id] for batch_id in self._running)
        return sorted(found, key=lambda b: (num_running[b.owner], b.created_s, b.id))

    async def _is_runnable(self, batch: Batch) -> bool:
        """Its file may be with another gateway, if they share no folder; its end can be told anywhere."""
        if batch.status is BatchStatus.CANCELLING or batch.status.is_final:
            return True
        if time.time() >= batch.expires_s:
            return True
        path = self._tools.files.path(batch.request.input_file_id)
        is_there = await run_in_threadpool(path.is_file)
        if not is_there:
            words = "batch %s: its input file is not in the folder of this gateway"
            log.debug(words, batch.id, extra=about(batch=batch.id))
        return is_there

    async def _claim(self, batch: Batch) -> None:
        settings, reads = self._tools.settings, self._tools.reads
        ttl_ms = int(settings.batch_lease_s * 1000)
        fence = int(await run_script_async(reads, "claim_batch", batch.id, ttl_ms))
        if not fence:
            return
        lease = Lease(
            reads, batch.id, fence, ttl_s=settings.batch_lease_s, keep_s=settings.file_ttl_s
        )
        run = BatchRun(self._tools, lease, lambda: self.window)
        self._owner_of[batch.id] = batch.owner
        with concerning(batch=batch.id):  # so are all lines of its task
            task = self._running[batch.id] = asyncio.create_task(run.run())
        task.add_done_callback(lambda _: self._end(batch.id))

    def _end(self, batch_id: str) -> None:
        self._owner_of.pop(batch_id, None)
        self._running.pop(batch_id, None)
        self._bell.set()
