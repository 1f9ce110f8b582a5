"""What the routes of OpenAI's API may answer, for OpenAPI."""

from typing import Any

from api import examples
from api.completions.form import Endpoint
from api.responses import KEYED_ROUTE, Responses, header, openai_refusals
from shared.errors import (
    BodyTimedOut,
    GenerationTimedOut,
    IdempotencyConflict,
    JobCancelled,
    JobFailed,
    JobNotFound,
    ModelNotFound,
    NoChatTemplate,
    NoWorkerReady,
    Overloaded,
    PromptTooLong,
    QueueFull,
    RedisFull,
    ShuttingDown,
    TooManyJobs,
    Unavailable,
    UnsupportedParameter,
)

_EXAMPLES: dict[Endpoint, dict[str, Any]] = {
    "/v1/chat/completions": examples.CHAT_COMPLETION,
    "/v1/completions": examples.COMPLETION,
}
_SCHEMA = {
    "type": "object",
    "required": ["id", "object", "created", "model", "choices"],
    "properties": {
        "id": {"type": "string"},
        "object": {"enum": ["chat.completion", "text_completion"]},
        "created": {"type": "integer"},
        "model": {"type": "string"},
        "status": {"enum": ["queued", "in_progress", "completed", "failed", "cancelled"]},
        "choices": {"type": "array", "items": {"type": "object"}},
        "usage": {"type": "object"},
    },
}
_STREAM = {"schema": {"type": "string"}, "example": "data: [DONE]\n\n"}
_JOB = {"X-Job-Id": header("the first of its jobs, for `/jobs/<id>`")}


def _shown(endpoint: Endpoint, **more: Any) -> dict[str, Any]:
    content = {"schema": _SCHEMA, "example": _EXAMPLES[endpoint]}
    return {"content": {"application/json": content}, **more}


def _submit(endpoint: Endpoint) -> Responses:
    done = _shown(
        endpoint,
        description="The answer; with `stream` its chunks, then `[DONE]`",
        headers=_JOB,
    )
    done["content"]["text/event-stream"] = _STREAM
    location = {"Location": header("where it can be fetched")}
    queued = _shown(
        endpoint, description="With `background`: it is in its queue", headers=_JOB | location
    )
    return openai_refusals(
        *KEYED_ROUTE,
        *(BodyTimedOut, PromptTooLong, UnsupportedParameter, NoChatTemplate),
        *(ModelNotFound, IdempotencyConflict, JobCancelled, GenerationTimedOut, JobFailed),
        *(QueueFull, TooManyJobs),
        *(RedisFull, NoWorkerReady, ShuttingDown, Overloaded, Unavailable),
        others={200: done, 202: queued},
    )


def _fetch(endpoint: Endpoint) -> Responses:
    return openai_refusals(*KEYED_ROUTE, JobNotFound, others={200: _shown(endpoint)})


SUBMIT: dict[Endpoint, Responses] = {endpoint: _submit(endpoint) for endpoint in _EXAMPLES}
FETCH: dict[Endpoint, Responses] = {endpoint: _fetch(endpoint) for endpoint in _EXAMPLES}
