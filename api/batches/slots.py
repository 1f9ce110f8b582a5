"""How many jobs the workers run at once, all together."""

from typing import Any

from pydantic import ValidationError
from redis.asyncio import Redis

from shared.keys import WORKERS, beat_key, worker_key
from shared.protocol import WorkerReport


async def count_slots(reads: Redis) -> int:
    members: Any = await reads.smembers(WORKERS)
    names = [name.decode(errors="replace") for name in members]
    async with reads.pipeline(transaction=False) as pipe:
        for name in names:
            pipe.hget(worker_key(name), "report")
            pipe.exists(beat_key(name))
        replies = await pipe.execute()
    pairs = zip(replies[::2], replies[1::2], strict=True)
    return sum(_slots(report) for report, is_live in pairs if is_live and report)


def _slots(raw: bytes) -> int:
    try:
        return WorkerReport.model_validate_json(raw).slots
    except ValidationError:
        return 0
