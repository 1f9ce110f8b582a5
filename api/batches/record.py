"""A batch: what was asked for, how far it is, and how OpenAI's clients are told. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from api.completions.form import Endpoint
from shared.protocol import Frozen

BATCH_ID = re.compile(r"batch_[0-9a-f]{32}")
COMPLETION_WINDOW_S = 86_400


class BatchStatus(StrEnum):
    VALIDATING = "validating"
    FAILED = "failed"
    IN_PROGRESS = "in_progress"
    FINALIZING = "finalizing"
    COMPLETED = "completed"
    EXPIRED = "expired"
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        return self in _FINAL


_FINAL = (
    BatchStatus.FAILED,
    BatchStatus.COMPLETED,
    BatchStatus.EXPIRED,
    BatchStatus.CANCELLED,
)
_TIMES = tuple(f"{status}_at" for status in BatchStatus if status is not BatchStatus.VALIDATING)


class BatchRequest(Frozen):
    """What was asked for."""

    endpoint: Endpoint
    input_file_id: str
    metadata: dict[str, str] | None = None
    output_ttl_s: int | None = None  #: of its output and error files
    webhook_url: str | None = None
    request_id: str | None = None


class LineProblem(Frozen):
    """Why a batch failed; ``line`` counts from 1."""

    code: str
    message: str
    line: int | None = None
    param: str | None = None


class Problems(Frozen):
    found: tuple[LineProblem, ...] = ()


class Progress(Frozen):
    """Up to where the batch is done; the files of ``part`` hold so many bytes that count."""

    lines: int = 0  #: of the input file, with those that are empty
    input_bytes: int = 0
    output_bytes: int = 0
    error_bytes: int = 0
    part: int = 0  #: fence of whoever wrote the part-files
    completed: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Batch:
    id: str
    owner: str
    request: BatchRequest
    status: BatchStatus
    times_s: Mapping[str, int]
    created_s: int
    expires_s: int
    total: int
    progress: Progress
    problems: tuple[LineProblem, ...]
    outcome: BatchStatus  #: what it becomes when its files are there
    output_file_id: str | None
    error_file_id: str | None

    @classmethod
    def from_hash(cls, batch_id: str, raw: Mapping[bytes, bytes]) -> "Batch | None":
        """``None`` for one that is not there, or is damaged."""
        try:
            return cls._read(batch_id, {k.decode(): v.decode() for k, v in raw.items()})
        except (KeyError, ValueError):
            return None

    @classmethod
    def _read(cls, batch_id: str, raw: Mapping[str, str]) -> "Batch":
        return cls(
            id=batch_id,
            owner=raw["owner"],
            request=BatchRequest.model_validate_json(raw["record"]),
            status=BatchStatus(raw["status"]),
            times_s={name: int(raw[name]) for name in _TIMES if name in raw},
            created_s=int(raw["created_at"]),
            expires_s=int(raw["expires_at"]),
            total=int(raw.get("total", "0")),
            progress=Progress.model_validate_json(raw.get("progress", "{}")),
            problems=Problems.model_validate_json(raw.get("problems", "{}")).found,
            outcome=BatchStatus(raw.get("outcome", "completed")),
            output_file_id=raw.get("output_file_id") or None,
            error_file_id=raw.get("error_file_id") or None,
        )

    def to_object(self) -> dict[str, Any]:
        done = self.progress
        errors = None
        if self.problems:
            errors = {"object": "list", "data": [problem.model_dump() for problem in self.problems]}
        return {
            "id": self.id,
            "object": "batch",
            "endpoint": self.request.endpoint,
            "errors": errors,
            "input_file_id": self.request.input_file_id,
            "completion_window": "24h",
            "status": self.status,
            "output_file_id": self.output_file_id,
            "error_file_id": self.error_file_id,
            "created_at": self.created_s,
            "expires_at": self.expires_s,
            **{name: self.times_s.get(name) for name in _TIMES},
            "request_counts": {
                "total": self.total,
                "completed": done.completed,
                "failed": done.failed,
            },
            "usage": {
                "input_tokens": done.prompt_tokens,
                "input_tokens_details": {"cached_tokens": done.cached_tokens},
                "output_tokens": done.completion_tokens,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": done.prompt_tokens + done.completion_tokens,
            },
            "metadata": self.request.metadata,
        }
