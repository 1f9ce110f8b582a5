"""Tells of the end of a batch. The one place where a webhook of a batch is put on its way."""

import logging

from api.batches.record import Batch
from api.batches.tools import BatchTools

log = logging.getLogger(__name__)


async def notify_end(_tools: BatchTools, batch: Batch) -> None:
    """``batch`` has ended, and stays open until this has returned: it is called again after a crash or
    an error, so the delivery needs an id made of the batch's. ``batch.request.webhook_url`` may be
    ``None``; the kind of the event is ``batch.<status>``."""
    log.info("batch %s: %s", batch.id, batch.status)
