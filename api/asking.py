"""Asks workers what they answer beside their jobs. One connection of a gateway waits for all its answers."""

import asyncio
import logging
from contextlib import suppress
from typing import Any
from uuid import uuid4

from redis.asyncio import Redis

from api.complaints import Complaints
from shared.asks import Answer, Question, fetch_answer, put_ask
from shared.connection import RedisError
from shared.errors import BadRequest, NoChatTemplate, Overloaded, ServiceError, Unavailable
from shared.keys import answered_key

log = logging.getLogger(__name__)

#: A text of the largest size takes a worker about a second, on a busy machine some.
ANSWER_TIMEOUT_S = 10.0
#: So many a gateway waits for at once.
MAX_WAITING = 256
_BLOCK_MS = 5_000
_PAUSE_S = 0.5


class Asking:
    """``waits`` is a client of its own, which may block for longer than ``BLOCK_MS``."""

    def __init__(self, waits: Redis, reads: Redis, complaints: Complaints) -> None:
        self._waits = waits
        self._reads = reads
        self._complaints = complaints
        self._gateway_id = uuid4().hex
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._has_asked = asyncio.Event()

    async def run(self) -> None:
        """For ever; idle while nobody waits."""
        cursor: bytes | str = "0-0"
        while True:
            await self._has_asked.wait()
            try:
                reply: Any = await self._waits.xread(
                    {answered_key(self._gateway_id): cursor}, count=1000, block=_BLOCK_MS
                )
                for _, entries in reply or ():
                    for entry_id, fields in entries:
                        cursor = entry_id
                        self._tell(fields.get(b"i", b"").decode(errors="replace"))
            except RedisError as error:
                if not self._complaints.covers(error):
                    log.warning("answers of workers cannot be read: %r", error)
                cursor = (
                    "0-0"  # a Redis that was emptied begins anew; those told before wait no longer
                )
                await asyncio.sleep(_PAUSE_S)

    def _tell(self, ask_id: str) -> None:
        waiting = self._waiting.get(ask_id)
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    async def ask(self, model: str, question: Question) -> Answer:
        """Raises ``NoWorkerReady``, ``Overloaded``, ``Unavailable``, or what the worker refuses."""
        if len(self._waiting) >= MAX_WAITING:
            raise Overloaded("Too many questions wait for a worker already; try again.")
        ask_id = uuid4().hex
        waiting = self._waiting[ask_id] = asyncio.get_running_loop().create_future()
        self._has_asked.set()
        try:
            timeout_ms = int(ANSWER_TIMEOUT_S * 1000)
            await put_ask(self._reads, model, ask_id, self._gateway_id, timeout_ms, question)
            # It may be there though nobody told: what was not seen in time is looked for.
            with suppress(TimeoutError):
                async with asyncio.timeout(ANSWER_TIMEOUT_S):
                    await waiting
            answer = await fetch_answer(self._reads, ask_id)
        finally:
            del self._waiting[ask_id]
            if not self._waiting:
                self._has_asked.clear()
        if answer is None:
            raise Unavailable(f"No worker has answered within {ANSWER_TIMEOUT_S:g} s; try again.")
        if answer.error is not None:
            raise _refusal(answer)
        return answer


def _refusal(answer: Answer) -> ServiceError:
    kinds: dict[str | None, type[ServiceError]] = {
        kind.code: kind for kind in (BadRequest, NoChatTemplate)
    }
    return kinds.get(answer.code, Unavailable)(answer.error, field=answer.field)
