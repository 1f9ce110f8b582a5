"""Deliveries in Redis: put there, taken for a while by whoever sends them, and settled.

Put by whatever ends a job (``common.lua``) or a batch (``enqueue``). A delivery is taken with a lease:
if its sender dies, it comes due again, so it may arrive twice, with the same id.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel, Field
from redis import Redis
from redis.asyncio import Redis as AsyncRedis

from shared.scripts import run_script, run_script_async
from shared.webhooks.addresses import shown_url


@dataclass(frozen=True, slots=True)
class Delivery:
    """Taken for its ``attempt``-th try, from 1. It tells of a job, as it is read then, or has ``data``
    (JSON) of its own."""

    delivery_id: str
    attempt: int
    url: str
    type: str  #: as ``job.completed``
    ended_ms: int
    job_id: str
    data: str


class DeliveryState(BaseModel):
    """What became of a webhook so far."""

    url: str = Field(description="without its query")
    attempts: int = 0
    delivered_at: datetime | None = None
    last_error: str | None = None


def job_delivery_id(job_id: str) -> str:
    """As ``common.lua`` makes it."""
    return f"job_{job_id}"


def enqueue(client: Redis, delivery_id: str, url: str, type: str, data: str, *, ttl_s: int) -> None:
    """``data`` is a JSON object. Again with the same id does nothing. It is forgotten after ``ttl_s``,
    whether it was delivered or not."""
    run_script(client, "put_webhook", delivery_id, url, type, data, ttl_s)


async def enqueue_async(
    client: AsyncRedis, delivery_id: str, url: str, type: str, data: str, *, ttl_s: int
) -> None:
    """``enqueue``, without blocking."""
    await run_script_async(client, "put_webhook", delivery_id, url, type, data, ttl_s)


async def take_due(
    client: AsyncRedis, *, lease_ms: int, most: int, most_per_host: int, busy: list[str]
) -> list[Delivery]:
    """``busy`` are the hosts that are being sent to, each as often as it is."""
    reply: Any = await run_script_async(
        client, "take_webhooks", lease_ms, most, most_per_host, *busy
    )
    return [_delivery(row) for row in reply]


async def settle(
    client: AsyncRedis,
    delivery: Delivery,
    outcome: str,
    *,
    error: str = "",
    retry_ms: int = 0,
    ttl_s: int,
) -> None:
    """``outcome`` is ``delivered``, ``retry`` or ``dropped``. Nothing, if somebody took it since."""
    await run_script_async(
        client,
        "settle_webhook",
        delivery.delivery_id,
        delivery.attempt,
        outcome,
        error,
        retry_ms,
        ttl_s,
    )


def read_state(url: str, raw: Mapping[bytes, bytes]) -> DeliveryState:
    """``raw`` is the delivery's hash; empty until the job has ended."""
    delivered_ms = raw.get(b"delivered_ms", b"")
    attempts = raw.get(b"attempts", b"0")
    at = datetime.fromtimestamp(int(delivered_ms) / 1000, UTC) if delivered_ms.isdigit() else None
    return DeliveryState(
        url=shown_url(url),
        attempts=int(attempts) if attempts.isdigit() else 0,
        delivered_at=at,
        last_error=raw.get(b"error", b"").decode(errors="replace") or None,
    )


def _delivery(row: list[bytes]) -> Delivery:
    delivery_id, attempt, url, kind, ended_ms, job_id, data = (
        field.decode(errors="replace") for field in row
    )
    whole_ms = int(ended_ms) if ended_ms.isdigit() else 0
    return Delivery(delivery_id, int(attempt), url, kind, whole_ms, job_id, data)
