"""Reads which models are served, at most once a second: every request asks."""

import asyncio
import time
from typing import Any

from pydantic import ValidationError
from redis.asyncio import Redis

from api.served_models import Models, ServedModel, find_model, served_models
from shared.keys import SERVED, WORKERS, beat_key, worker_key
from shared.protocol import WorkerReport

FRESH_S = 1.0


class ModelReader:
    """``own`` is the gateway's own model, ``own_given`` what it was told for it; ``grace_s`` is how long
    jobs of a model are taken after its last worker was there."""

    def __init__(self, reads: Redis, own: str, own_given: str, grace_s: float) -> None:
        self._reads = reads
        self._own = own
        self._own_given = own_given
        self._grace_s = grace_s
        self._lock = asyncio.Lock()
        self._models: Models = {}
        self._read_s = float("-inf")

    async def models(self) -> Models:
        """Redis errors pass through."""
        async with self._lock:  # of a burst the first one reads
            if time.monotonic() - self._read_s >= FRESH_S:
                self._models = await self._read()
                self._read_s = time.monotonic()
            return self._models

    async def find(self, asked: str | None) -> ServedModel:
        """Raises ``ModelNotFound``."""
        return find_model(await self.models(), asked, self._own, self._own_given)

    async def _read(self) -> Models:
        members: Any = await self._reads.smembers(WORKERS)
        names = sorted(name.decode(errors="replace") for name in members)
        async with self._reads.pipeline(transaction=False) as pipe:
            pipe.time()
            pipe.hgetall(SERVED)
            for name in names:
                pipe.hget(worker_key(name), "report")
                pipe.exists(beat_key(name))
            (now_s, _), served, *rest = await pipe.execute()
        recent = [
            model.decode(errors="replace")
            for model, beat_ms in served.items()
            if beat_ms.isdigit() and now_s - int(beat_ms) / 1000 <= self._grace_s
        ]
        pairs = zip(rest[::2], rest[1::2], strict=True)
        reports = [_report(raw) for raw, is_live in pairs if is_live]
        return served_models(self._own, recent, [report for report in reports if report])


def _report(raw: Any) -> WorkerReport | None:
    try:
        return WorkerReport.model_validate_json(raw or b"")
    except ValidationError:
        return None
