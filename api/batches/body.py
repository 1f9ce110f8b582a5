"""The body of ``POST /v1/batches``. What is not honoured is refused by name."""

from typing import Annotated, Any, Literal

from pydantic import Field

from api.batches.record import BatchRequest
from api.completions.form import Endpoint
from api.files.expiry import ExpiresAfter
from api.request_schema import inlined
from api.validation import parse_body
from shared.protocol import Frozen, Text

_Name = Annotated[Text, Field(min_length=1, max_length=64)]
_Value = Annotated[Text, Field(max_length=512)]


class BatchBody(Frozen):
    input_file_id: Text
    endpoint: Endpoint
    completion_window: Literal["24h"]
    metadata: Annotated[dict[_Name, _Value], Field(max_length=16)] | None = None
    output_expires_after: ExpiresAfter | None = None
    webhook_url: Annotated[Text, Field(min_length=1, max_length=2048)] | None = None


def parse_batch_body(raw: bytes, request_id: str) -> BatchRequest:
    """Raises ``BadRequest``."""
    body = parse_body(BatchBody, raw)
    expires = body.output_expires_after
    return BatchRequest(
        endpoint=body.endpoint,
        input_file_id=body.input_file_id,
        metadata=body.metadata,
        output_ttl_s=None if expires is None else expires.seconds,
        webhook_url=body.webhook_url,
        request_id=request_id,
    )


def batch_body() -> dict[str, Any]:
    """For OpenAPI."""
    schema = BatchBody.model_json_schema()
    example = {
        "input_file_id": "file-" + "3f" * 16,
        "endpoint": "/v1/chat/completions",
        "completion_window": "24h",
    }
    content = {"schema": inlined(schema, schema.get("$defs", {})), "example": example}
    return {"required": True, "content": {"application/json": content}}


def file_form() -> dict[str, Any]:
    """For OpenAPI: the form of ``POST /v1/files``."""
    schema = {
        "type": "object",
        "required": ["file", "purpose"],
        "additionalProperties": False,
        "dependentRequired": {
            "expires_after[anchor]": ["expires_after[seconds]"],
            "expires_after[seconds]": ["expires_after[anchor]"],
        },
        "properties": {
            "file": {"type": "string", "format": "binary"},
            "purpose": {"enum": ["batch"]},
            "expires_after[anchor]": {"enum": ["created_at"]},
            "expires_after[seconds]": {"type": "integer", "minimum": 3600, "maximum": 2_592_000},
        },
    }
    return {"required": True, "content": {"multipart/form-data": {"schema": schema}}}
