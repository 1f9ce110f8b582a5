"""What files and batches look like, for OpenAPI, and the ids in their paths."""

from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import WithJsonSchema

from api.batches.record import BATCH_ID, BatchStatus
from api.files.record import FILE_ID

_FILE_ID = "file-" + "3f" * 16
_BATCH_ID = "batch_" + "7c" * 16

FileIdPath = Annotated[
    str,
    Path(description="`id` of a file"),
    WithJsonSchema({"type": "string", "pattern": f"^{FILE_ID.pattern}$", "examples": [_FILE_ID]}),
]
BatchIdPath = Annotated[
    str,
    Path(description="`id` of a batch"),
    WithJsonSchema({"type": "string", "pattern": f"^{BATCH_ID.pattern}$", "examples": [_BATCH_ID]}),
]

AfterFile = Annotated[
    str | None,
    Query(description="id of the last file of the page before"),
    WithJsonSchema({"type": "string", "pattern": f"^{FILE_ID.pattern}$"}),
]
AfterBatch = Annotated[
    str | None,
    Query(description="id of the last batch of the page before"),
    WithJsonSchema({"type": "string", "pattern": f"^{BATCH_ID.pattern}$"}),
]

FILE: dict[str, Any] = {
    "id": _FILE_ID,
    "object": "file",
    "bytes": 140,
    "created_at": 1_790_000_000,
    "expires_at": 1_792_592_000,
    "filename": "in.jsonl",
    "purpose": "batch",
    "status": "processed",
    "status_details": None,
}
FILES = {
    "object": "list",
    "data": [FILE],
    "first_id": _FILE_ID,
    "last_id": _FILE_ID,
    "has_more": False,
}
BATCH: dict[str, Any] = {
    "id": _BATCH_ID,
    "object": "batch",
    "endpoint": "/v1/chat/completions",
    "errors": None,
    "input_file_id": _FILE_ID,
    "completion_window": "24h",
    "status": "in_progress",
    "output_file_id": None,
    "error_file_id": None,
    "created_at": 1_790_000_000,
    "expires_at": 1_790_086_400,
    **{f"{status}_at": None for status in BatchStatus if status is not BatchStatus.VALIDATING},
    "in_progress_at": 1_790_000_001,
    "request_counts": {"total": 500, "completed": 120, "failed": 1},
    "usage": {
        "input_tokens": 3630,
        "input_tokens_details": {"cached_tokens": 900},
        "output_tokens": 960,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 4590,
    },
    "metadata": {"of": "tuesday"},
}
BATCHES = {
    "object": "list",
    "data": [BATCH],
    "first_id": _BATCH_ID,
    "last_id": _BATCH_ID,
    "has_more": False,
}


def shown_object(example: dict[str, Any], description: str = "Done") -> dict[str, Any]:
    schema = {
        "type": "object",
        "required": list(example),
        "properties": {"object": {"const": example["object"]}},
    }
    content = {"application/json": {"schema": schema, "example": example}}
    return {"description": description, "content": content}
