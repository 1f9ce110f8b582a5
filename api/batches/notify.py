"""Tells of the end of a batch. The one place where a webhook of a batch is put on its way."""

import json
import logging

from api.batches.record import Batch
from api.batches.tools import BatchTools
from shared.logs import about
from shared.webhooks.deliveries import enqueue_async

log = logging.getLogger(__name__)


async def notify_end(tools: BatchTools, batch: Batch) -> None:
    """``batch`` has ended, and stays open until this has returned: it is called again after a crash or
    an error, so the delivery has an id made of the batch's."""
    log.info("batch %s: %s", batch.id, batch.status, extra=about(batch=batch.id))
    url = batch.request.webhook_url
    if url is None:
        return
    data = json.dumps(batch.to_object())
    kind, ttl_s = f"batch.{batch.status}", tools.settings.result_ttl_s
    await enqueue_async(tools.reads, batch.id, url, kind, data, ttl_s=ttl_s)
