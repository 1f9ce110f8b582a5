"""Workers that could not start, as they said it themselves: kept in Redis for a while, for /ready.

A worker that cannot reach Redis, or is refused by it, is not among them. Nothing that is read back is
trusted: Redis may hold anything.
"""

import re
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError
from redis import Redis
from redis.asyncio import Redis as AsyncRedis
from redis.exceptions import NoPermissionError, ResponseError

from shared.keys import FAILURES
from shared.scripts import run_script

TTL_S = 600
MAX_SHOWN = 32
MAX_MESSAGE_CHARS = 500
_MAX_NAME_CHARS = 80
_MAX_ENTRY_BYTES = 8192


class FailedStart(BaseModel):
    """``message`` is the one line of the worker's log; ``at`` in seconds of Redis' clock."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    name: str
    host: str
    model: str
    message: str
    at: float


def report_failure(client: Redis, *, name: str, host: str, model: str, message: str) -> None:
    """Takes the place of what a worker of this name said before. Redis errors pass through."""
    # A path may have bytes in it that are no text.
    text = message[: 2 * MAX_MESSAGE_CHARS].encode(errors="replace").decode()
    failure = FailedStart(name=name, host=host, model=model, message=text, at=0)
    payload = failure.model_dump_json(exclude={"at"})  # Redis' clock has that
    run_script(client, "fail", name, payload, TTL_S, MAX_SHOWN)


def forget_failure(client: Redis, name: str) -> None:
    """A worker of this name has become ready."""
    try:
        client.hdel(FAILURES, name)
    except NoPermissionError:
        raise
    except ResponseError:  # it is no hash: nothing of ours, and the next report replaces it
        return


async def read_failures(reads: AsyncRedis) -> tuple[FailedStart, ...]:
    """The newest first. What cannot be read is left out."""
    async with reads.pipeline(transaction=True) as pipe:
        pipe.time()
        pipe.hgetall(FAILURES)
        (seconds, _), fields = await pipe.execute(raise_on_error=False)
    if isinstance(fields, NoPermissionError):
        raise fields
    if not isinstance(fields, dict):
        return ()
    return shown_failures(fields, now_s=seconds)


def shown_failures(fields: dict[Any, Any], *, now_s: float) -> tuple[FailedStart, ...]:
    """Pure."""
    read = (_read(value) for value in fields.values())
    recent = [f for f in read if f and -TTL_S < now_s - f.at < TTL_S]
    return tuple(sorted(recent, key=lambda f: (-f.at, f.name))[:MAX_SHOWN])


def _read(value: bytes) -> FailedStart | None:
    if len(value) > _MAX_ENTRY_BYTES:
        return None
    try:
        failure = FailedStart.model_validate_json(value)
    except ValidationError:
        return None
    return FailedStart(
        name=_one_line(failure.name, _MAX_NAME_CHARS),
        host=_one_line(failure.host, _MAX_NAME_CHARS),
        model=_one_line(failure.model, _MAX_NAME_CHARS),
        message=_one_line(failure.message, MAX_MESSAGE_CHARS),
        at=failure.at,
    )


def _one_line(text: str, max_chars: int) -> str:
    line = re.sub(r"\s+", " ", "".join(c if c.isprintable() else " " for c in text)).strip()
    return line if len(line) <= max_chars else line[: max_chars - 3] + "..."
