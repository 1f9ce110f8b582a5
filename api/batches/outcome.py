"""A line of the output or error file, as OpenAI writes them. Pure."""

import hashlib
import json
from typing import Any

from api.errors import status_of
from api.openai_errors import openai_body, openai_status
from shared.errors import ServiceError

UNFINISHED = {
    "cancelled": ("batch_cancelled", "The batch was cancelled before this request was done."),
    "expired": ("batch_expired", "This request was not done before the completion window expired."),
}


def answered(batch_id: str, custom_id: str, request_id: str, body: dict[str, Any]) -> bytes:
    return _line(batch_id, custom_id, _response(200, request_id, body), None)


def refused(batch_id: str, custom_id: str, request_id: str, error: ServiceError) -> bytes:
    status = openai_status(error, status_of(error))
    body = openai_body(error, status)
    told = {"code": error.code, "message": error.message}
    return _line(batch_id, custom_id, _response(status, request_id, body), told)


def unfinished(batch_id: str, custom_id: str, outcome: str) -> bytes:
    """``outcome`` is that of the batch: cancelled or expired."""
    code, message = UNFINISHED[outcome]
    return _line(batch_id, custom_id, None, {"code": code, "message": message})


def _response(status: int, request_id: str, body: dict[str, Any]) -> dict[str, Any]:
    return {"status_code": status, "request_id": request_id, "body": body}


def _line(
    batch_id: str,
    custom_id: str,
    response: dict[str, Any] | None,
    error: dict[str, Any] | None,
) -> bytes:
    words = hashlib.sha256(f"{batch_id}\0{custom_id}".encode()).hexdigest()
    row = {
        "id": f"batch_req_{words[:32]}",
        "custom_id": custom_id,
        "response": response,
        "error": error,
    }
    return json.dumps(row).encode() + b"\n"
