"""Batches in Redis, for the routes: created, found, listed and cancelled."""

import hashlib
from typing import Any

from redis.asyncio import Redis
from starlette.concurrency import run_in_threadpool

from api.batches.record import BATCH_ID, COMPLETION_WINDOW_S, Batch, BatchRequest, BatchStatus
from api.batches.tools import BatchTools
from api.files.record import new_file_id
from api.keyring import Caller, Role
from shared.errors import BatchEnded, BatchNotFound, IdempotencyConflict, TooManyBatches
from shared.keys import batch_key, batches_key
from shared.scripts import run_script_async

#: An ended batch may have been created so long before its end.
_LISTED_EXTRA_S = 2 * COMPLETION_WINDOW_S


async def create_batch(
    tools: BatchTools, request: BatchRequest, caller: Caller, idempotency_key: str | None
) -> Batch:
    """Raises ``TooManyBatches`` or ``IdempotencyConflict``. With the same key it is the same batch."""
    batch_id = "batch_" + new_file_id().removeprefix("file-")
    if idempotency_key is not None:
        name = f"batch {idempotency_key}"  # no user's key of a job has a space in it
        named = await run_in_threadpool(tools.broker.named_id, caller.owner, name)
        batch_id = f"batch_{named}"
    asked = request.model_dump_json(exclude={"request_id"})
    settings = tools.settings
    verdict = await run_script_async(
        tools.reads,
        "create_batch",
        batch_id,
        hashlib.sha256(asked.encode()).hexdigest(),
        request.model_dump_json(),
        caller.owner,
        request.input_file_id,
        settings.batch_max_open,
        COMPLETION_WINDOW_S,
        settings.file_ttl_s + _LISTED_EXTRA_S,
    )
    if verdict == b"conflict":
        raise IdempotencyConflict("Another batch was created with this Idempotency-Key.")
    if verdict == b"full":
        most = settings.batch_max_open
        raise TooManyBatches(f"{most} batches have not ended (batch_max_open); come again later.")
    return await find_batch(tools.reads, batch_id, caller)


async def find_batch(reads: Redis, batch_id: str, caller: Caller) -> Batch:
    """Raises ``BatchNotFound``, also for one of somebody else."""
    if not BATCH_ID.fullmatch(batch_id):
        raise BatchNotFound
    raw: Any = await reads.hgetall(batch_key(batch_id))
    batch = Batch.from_hash(batch_id, raw)
    if batch is None or not caller.may_see(batch.owner):
        raise BatchNotFound
    return batch


async def cancel_batch(reads: Redis, batch_id: str, caller: Caller) -> Batch:
    """Again is harmless. Raises ``BatchNotFound`` or ``BatchEnded``."""
    await find_batch(reads, batch_id, caller)
    status = (await run_script_async(reads, "cancel_batch", batch_id)).decode()
    if status not in (BatchStatus.CANCELLING, BatchStatus.CANCELLED):
        raise BatchEnded(f"The batch is {status or 'gone'} and cannot be cancelled any more.")
    return await find_batch(reads, batch_id, caller)


async def list_batches(
    reads: Redis, caller: Caller, limit: int, after: str | None
) -> tuple[list[Batch], bool]:
    """Newest first, and whether there are more."""
    key = batches_key("" if caller.role is Role.ADMIN else caller.owner)
    start = 0
    if after is not None:
        rank: Any = await reads.zrevrank(key, after)
        if rank is None:
            raise BatchNotFound("after: there is no such batch in this list", field="after")
        start = rank + 1
    found: list[Batch] = []
    while True:
        members: Any = await reads.zrevrange(key, start, start + limit)
        ids = [member.decode(errors="replace") for member in members]
        async with reads.pipeline(transaction=False) as pipe:
            for batch_id in ids:
                pipe.hgetall(batch_key(batch_id))
            replies = await pipe.execute()
        pairs = zip(ids, replies, strict=True)
        there = [Batch.from_hash(batch_id, raw) for batch_id, raw in pairs]
        found += [batch for batch in there if batch is not None]  # the others have expired
        if len(found) > limit or len(ids) <= limit:
            return found[:limit], len(found) > limit
        start += len(ids)
