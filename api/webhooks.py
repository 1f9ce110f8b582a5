"""Sends what is due to webhooks, a few at a time, beside answering.

Each delivery is taken with a lease: what a gateway that dies was sending, another one sends again.
"""

import asyncio
import json
import logging
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
from redis.asyncio import Redis

from api.complaints import Complaints
from api.job_view import JobView
from api.webhook_payload import job_data, payload
from api.webhook_target import NotTaken, Refused, WebhookTarget
from shared.connection import RedisError
from shared.errors import JobNotFound
from shared.logs import about
from shared.settings import Settings
from shared.webhooks.deliveries import Delivery, settle, take_due
from shared.webhooks.retries import delay_s
from shared.webhooks.signing import secret_bytes, signed_headers

log = logging.getLogger(__name__)

LOOK_EVERY_S = 0.5
MAX_SENDING = 8
#: Else one slow receiver would have them all.
MAX_SENDING_PER_HOST = 2
#: Beyond the longest try: to read the job, and to settle.
_LEASE_MARGIN_S = 20.0

ReadJob = Callable[[str], Awaitable[JobView]]


class WebhookSender:
    def __init__(
        self, client: Redis, settings: Settings, read_job: ReadJob, complaints: Complaints
    ) -> None:
        """``read_job`` raises ``JobNotFound``."""
        self._client = client
        self._settings = settings
        self._read_job = read_job
        self._complaints = complaints
        self._sending: dict[asyncio.Task[None], str] = {}
        self._is_failing = False

    async def run(self) -> None:
        """For ever; nothing to do where no secret is set, since nothing can be signed."""
        secret = self._settings.webhook_secret.get_secret_value()
        if not secret:
            return
        target = WebhookTarget(
            allow_private=self._settings.webhook_allow_private,
            timeout_s=self._settings.webhook_timeout_s,
        )
        try:
            while True:
                await self._try(self._send_due(target, secret_bytes(secret)), "look")
                await asyncio.sleep(LOOK_EVERY_S)
        finally:
            for task in self._sending:
                task.cancel()
            await asyncio.gather(*self._sending, return_exceptions=True)
            await target.aclose()

    async def _try(self, step: Awaitable[None], what: str) -> None:
        """What fails is tried again: at the next look, or when the lease is over."""
        try:
            await step
            self._is_failing = False
        except Exception as error:
            if not self._complaints.covers(error) and not self._is_failing:
                is_expected = isinstance(error, RedisError | OSError)
                log.warning("webhooks: %s failed: %r", what, error, exc_info=not is_expected)
            self._is_failing = True

    async def _send_due(self, target: WebhookTarget, key: bytes) -> None:
        room = MAX_SENDING - len(self._sending)
        if room <= 0:
            return
        due = await take_due(
            self._client,
            lease_ms=int((self._settings.webhook_timeout_s + _LEASE_MARGIN_S) * 1000),
            most=room,
            most_per_host=MAX_SENDING_PER_HOST,
            busy=list(self._sending.values()),
        )
        for delivery in due:
            task = asyncio.create_task(self._try(self._send(target, key, delivery), "sending"))
            self._sending[task] = _host(delivery.url)
            task.add_done_callback(self._sending.pop)

    async def _send(self, target: WebhookTarget, key: bytes, delivery: Delivery) -> None:
        try:
            body = payload(delivery, await self._data(delivery))
            headers = signed_headers(key, delivery.delivery_id, int(time.time()), body)
            await target.post(delivery.url, headers | {"Content-Type": "application/json"}, body)
        except (Refused, NotTaken) as error:
            await self._failed(delivery, str(error), may_retry=isinstance(error, NotTaken))
        except RedisError:
            raise  # it comes due again when its lease is over
        except Exception:
            told = about(job=delivery.job_id or None)
            log.exception("webhook %s failed inside the gateway", delivery.delivery_id, extra=told)
            await self._failed(delivery, "it failed inside the gateway", may_retry=True)
        else:
            await self._settle(delivery, "delivered")

    async def _data(self, delivery: Delivery) -> Any:
        if not delivery.job_id:
            try:
                return json.loads(delivery.data)
            except ValueError:
                raise Refused("its data is damaged") from None
        try:
            return job_data(await self._read_job(delivery.job_id))
        except JobNotFound:
            raise Refused("the job has expired") from None

    async def _failed(self, delivery: Delivery, error: str, *, may_retry: bool) -> None:
        if may_retry and delivery.attempt < self._settings.webhook_max_attempts:
            wait_s = delay_s(delivery.attempt, self._settings.webhook_retry_s, random.random())
            await self._settle(delivery, "retry", error=error, retry_ms=int(wait_s * 1000))
            return
        log.warning(
            "webhook %s to %s is given up after %d attempts: %s",
            delivery.delivery_id,
            _host(delivery.url),
            delivery.attempt,
            error,
            extra=about(job=delivery.job_id or None),
        )
        await self._settle(delivery, "dropped", error=error)

    async def _settle(
        self, delivery: Delivery, outcome: str, *, error: str = "", retry_ms: int = 0
    ) -> None:
        ttl_s = self._settings.result_ttl_s
        await settle(self._client, delivery, outcome, error=error, retry_ms=retry_ms, ttl_s=ttl_s)


def _host(url: str) -> str:
    """As ``take_webhooks.lua`` finds it."""
    return httpx.URL(url).netloc.decode().lower()
