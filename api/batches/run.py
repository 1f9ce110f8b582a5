"""One batch in the hands of one gateway, from state to state until it has ended.

What passes (Redis away, a full disk) is waited for, and never ends a batch: its time does.
"""

import asyncio
import hashlib
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from starlette.concurrency import run_in_threadpool

from api.batches.checking import check_file
from api.batches.execution import Execution
from api.batches.lease import Lease, LeaseLost
from api.batches.lines import LINE_EXTRA_BYTES
from api.batches.notify import notify_end
from api.batches.parts import ERROR, OUTPUT, PartFiles
from api.batches.reader import LineReader
from api.batches.record import Batch, BatchStatus, Problems, Progress
from api.batches.tools import BatchTools
from api.files.record import FileRecord
from shared.connection import RedisError
from shared.errors import ServiceError
from shared.keys import OPEN_BATCHES, batch_key, batch_lease_key

log = logging.getLogger(__name__)

_PAUSE_S = 1.0


class BatchRun:
    def __init__(self, tools: BatchTools, lease: Lease, window: Callable[[], int]) -> None:
        self._tools = tools
        self._lease = lease
        self._window = window
        self._parts = PartFiles(tools.files, lease.batch_id, lease.fence)

    async def run(self) -> None:
        """Until the batch has ended, or is another gateway's."""
        keeper = asyncio.create_task(self._lease.keep())
        told = ""
        try:
            while True:
                try:
                    await self._go_on()
                    return
                except (LeaseLost, FileNotFoundError):
                    return
                except Exception as error:
                    is_expected = isinstance(error, ServiceError | RedisError | OSError)
                    if repr(error) != told:
                        told = repr(error)
                        words = "batch %s is held up: %s"
                        log.warning(words, self._lease.batch_id, error, exc_info=not is_expected)
                await asyncio.sleep(_PAUSE_S)
        finally:
            with suppress(LeaseLost, RedisError, OSError):
                await asyncio.shield(self._lease.release())
            keeper.cancel()

    async def _go_on(self) -> None:
        await self._lease.record()
        while batch := await self._read():
            match batch.status:
                case BatchStatus.VALIDATING:
                    await self._validate(batch)
                case BatchStatus.IN_PROGRESS | BatchStatus.CANCELLING:
                    await self._execute(batch)
                case BatchStatus.FINALIZING:
                    await self._finish(batch, batch.outcome)
                case _:
                    await notify_end(self._tools, batch)
                    await self._settle()
                    return

    async def _read(self) -> Batch | None:
        raw: Any = await self._tools.reads.hgetall(batch_key(self._lease.batch_id))
        batch = Batch.from_hash(self._lease.batch_id, raw)
        if batch is None and raw:
            log.error("batch %s: its record is damaged", self._lease.batch_id)
            await self._settle()
        return batch

    async def _validate(self, batch: Batch) -> None:
        if self._lease.now_s >= batch.expires_s:
            outcome = {"outcome": BatchStatus.EXPIRED.value}
            await self._lease.move(batch.status, BatchStatus.FINALIZING, **outcome)
            return
        checker = await check_file(self._tools, batch.request)
        if checker.problems:
            problems = Problems(found=tuple(checker.problems)).model_dump_json()
            await self._lease.move(batch.status, BatchStatus.FAILED, problems=problems)
        else:
            await self._lease.move(batch.status, BatchStatus.IN_PROGRESS, total=checker.total)

    async def _execute(self, batch: Batch) -> None:
        progress = await run_in_threadpool(self._parts.take_over, batch.progress)
        await self._lease.record(progress=progress.model_dump_json())
        await run_in_threadpool(self._parts.forget, batch.progress.part)
        if batch.total:  # else it was cancelled before it was read
            await self._run_lines(batch, progress)
        ended = await self._read()
        if ended is None or ended.status is not batch.status:
            return
        if ended.status is BatchStatus.CANCELLING:
            await self._finish(ended, BatchStatus.CANCELLED)
            return
        num_done = ended.progress.completed + ended.progress.failed
        outcome = BatchStatus.COMPLETED if num_done == ended.total else BatchStatus.EXPIRED
        await self._lease.move(ended.status, BatchStatus.FINALIZING, outcome=outcome.value)

    async def _run_lines(self, batch: Batch, progress: Progress) -> None:
        path = self._tools.files.path(batch.request.input_file_id)
        most = self._tools.settings.max_body_bytes + LINE_EXTRA_BYTES
        try:
            with await run_in_threadpool(
                lambda: LineReader(path, most, lines=progress.lines, offset=progress.input_bytes)
            ) as reader:
                await Execution(
                    self._tools,
                    self._lease,
                    replace(batch, progress=progress),
                    self._parts,
                    reader,
                    self._window,
                ).run()
        except FileNotFoundError:
            is_over = self._lease.now_s >= batch.expires_s
            if not is_over and batch.status is not BatchStatus.CANCELLING:
                raise

    async def _finish(self, batch: Batch, outcome: BatchStatus) -> None:
        """Its files are there before it says so."""
        sizes = {OUTPUT: batch.progress.output_bytes, ERROR: batch.progress.error_bytes}
        files = {kind: await self._publish(batch, kind, size) for kind, size in sizes.items()}
        await self._lease.move(
            batch.status, outcome, output_file_id=files[OUTPUT], error_file_id=files[ERROR]
        )

    async def _publish(self, batch: Batch, kind: str, num_bytes: int) -> str:
        """Its id, always the same; '' where there is nothing in it."""
        if not num_bytes:
            return ""
        file_id = f"file-{hashlib.sha256(f'{batch.id} {kind}'.encode()).hexdigest()[:32]}"
        now_s = self._lease.now_s
        record = FileRecord(
            id=file_id,
            owner=batch.owner,
            filename=f"{batch.id}_{kind}.jsonl",
            purpose="batch_output",
            bytes=num_bytes,
            created_s=now_s,
            expires_s=now_s + (batch.request.output_ttl_s or self._tools.settings.file_ttl_s),
        )
        part = self._parts.path(kind, batch.progress.part)
        await run_in_threadpool(self._tools.files.publish, part, record)
        return file_id

    async def _settle(self) -> None:
        async with self._tools.reads.pipeline(transaction=False) as pipe:
            pipe.srem(OPEN_BATCHES, self._lease.batch_id)
            pipe.delete(batch_lease_key(self._lease.batch_id))
            await pipe.execute()
        self._lease.is_lost = True
