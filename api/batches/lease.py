"""The hold of one gateway on one batch: renewed while it works, and the way to record how far it is."""

import asyncio
import logging
from typing import Any

from redis.asyncio import Redis

from api.batches.record import BatchStatus
from shared.connection import RedisError
from shared.scripts import run_script_async

log = logging.getLogger(__name__)


class LeaseLost(Exception):
    """Another gateway has taken the batch, or it is gone: what this one records no longer counts."""


class Lease:
    """``status`` and ``now_s`` are as Redis said last."""

    def __init__(
        self, client: Redis, batch_id: str, fence: int, *, ttl_s: float, keep_s: int
    ) -> None:
        self.batch_id = batch_id
        self.fence = fence
        self.status: BatchStatus | None = None
        self.now_s = 0
        self.is_lost = False
        self._client = client
        self._lock = asyncio.Lock()  # a renewal under way must not come after the release
        self._ttl_s = ttl_s
        self._keep_s = keep_s

    async def keep(self) -> None:
        """Until it is lost."""
        while not self.is_lost:
            try:
                await self.record()
            except LeaseLost:
                return
            except (RedisError, OSError) as error:
                log.debug("batch %s: the lease was not renewed: %r", self.batch_id, error)
            await asyncio.sleep(min(1.0, self._ttl_s / 3))

    async def record(self, **fields: str | int) -> None:
        """Raises ``LeaseLost``."""
        await self._run(self._ttl_s, "", "", fields)

    async def move(self, before: BatchStatus, after: BatchStatus, **fields: str | int) -> bool:
        """Whether it was ``before``, and so is ``after`` now. Raises ``LeaseLost``."""
        return await self._run(self._ttl_s, before, after, fields)

    def check(self) -> None:
        """Raises ``LeaseLost`` as soon as that is known: who waits for jobs records nothing."""
        if self.is_lost:
            raise LeaseLost

    async def release(self) -> None:
        """Another gateway need not wait for its end."""
        if not self.is_lost:
            await self._run(0.001, "", "", {})
            self.is_lost = True

    async def _run(self, ttl_s: float, before: str, after: str, fields: dict[str, Any]) -> bool:
        ttl_ms = max(1, int(ttl_s * 1000))
        words = [word for pair in fields.items() for word in pair]
        args = (self.batch_id, self.fence, ttl_ms, before, after, self._keep_s, *words)
        async with self._lock:
            self.check()
            reply = await run_script_async(self._client, "move_batch", *args)
        if reply == b"fenced":
            self.is_lost = True
            raise LeaseLost
        is_moved, status, now_s = reply
        self.status, self.now_s = BatchStatus(status.decode()), int(now_s)
        return bool(is_moved)
