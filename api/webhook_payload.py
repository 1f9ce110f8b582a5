"""What a webhook says: what ended, and the job as ``GET /jobs/<id>`` has it, with a bound. Pure."""

import json
from datetime import UTC, datetime
from typing import Any

from api.job_view import JobView
from shared.webhooks.deliveries import Delivery

MAX_TEXT_BYTES = 65_536


def job_data(job: JobView) -> dict[str, Any]:
    """A text that is too long is left out, and fetched at ``links.job``."""
    data = job.model_dump(mode="json", exclude={"webhook"})
    data["links"] = {"job": f"/jobs/{job.job_id}"}
    data["text_omitted"] = len(job.text.encode(errors="replace")) > MAX_TEXT_BYTES
    if data["text_omitted"]:
        data["text"] = None
    return data


def payload(delivery: Delivery, data: object) -> bytes:
    at = datetime.fromtimestamp(delivery.ended_ms / 1000, UTC).isoformat().replace("+00:00", "Z")
    return json.dumps({"type": delivery.type, "timestamp": at, "data": data}).encode()
