"""Takes away files that have expired, and what uploads and batches left behind when they broke off."""

import asyncio
import logging
import time

from redis.asyncio import Redis
from starlette.concurrency import run_in_threadpool

from api.files.store import FileStore
from shared.keys import file_readers_key

log = logging.getLogger(__name__)

TIDY_EVERY_S = 60.0


async def keep_tidy(store: FileStore, reads: Redis) -> None:
    is_failing = False
    while True:
        try:
            await tidy_files(store, reads, time.time())
            is_failing = False
        except Exception as error:
            if not is_failing:
                log.warning("files were not tidied: %r", error)
            is_failing = True
        await asyncio.sleep(TIDY_EVERY_S)


async def tidy_files(store: FileStore, reads: Redis, now_s: float) -> None:
    """A file that a batch reads stays until that has ended."""
    for file_id in await run_in_threadpool(store.expired, now_s):
        if not await reads.scard(file_readers_key(file_id)):
            await run_in_threadpool(store.delete, file_id)
            log.info("file %s has expired", file_id)
    num_abandoned = await run_in_threadpool(store.drop_abandoned, now_s)
    if num_abandoned:
        log.info("%d files without an end or a record were dropped", num_abandoned)
