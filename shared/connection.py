"""Redis clients. None retries by itself: redis-py's default re-sends XADD and RQ's push after a
timeout, which was seen to run both twice; whoever may repeat a call does so knowingly."""

from typing import Any

import redis
import redis.asyncio
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.connection import parse_url
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError, ResponseError
from redis.retry import Retry

from shared.redis_url import bad_url

#: Seconds until a command counts as failed. A reader that blocks must use a longer one.
COMMAND_TIMEOUT_S = 10.0
#: Of what a client waits for that only looks: a frozen Redis is to be told of soon.
READ_TIMEOUT_S = 3.0

__all__ = ["RedisConnectionError", "RedisError", "ResponseError", "connect", "connect_async"]


def connect(url: str, *, timeout_s: float | None = COMMAND_TIMEOUT_S) -> "redis.Redis":
    """A client that answers in bytes (RQ breaks silently on decoded replies)."""
    client: redis.Redis = redis.Redis.from_url(
        _checked(url),
        socket_timeout=timeout_s,
        socket_connect_timeout=COMMAND_TIMEOUT_S if timeout_s is None else timeout_s,
        retry=Retry(NoBackoff(), 0),
        retry_on_error=[],
    )
    return client


def connect_async(
    url: str, *, timeout_s: float | None = COMMAND_TIMEOUT_S, **options: Any
) -> "redis.asyncio.Redis":
    client: redis.asyncio.Redis = redis.asyncio.Redis.from_url(
        _checked(url),
        socket_timeout=timeout_s,
        socket_connect_timeout=COMMAND_TIMEOUT_S if timeout_s is None else timeout_s,
        retry=AsyncRetry(NoBackoff(), 0),
        retry_on_error=[],
        **options,
    )
    return client


def _checked(url: str) -> str:
    try:
        parse_url(url)  # type: ignore[no-untyped-call]
    except ValueError as error:
        raise bad_url(url, error) from None
    return url
