"""The events of a stream for OpenAPI: an event is an object with ``event``, ``id`` and ``data``, and the
data is JSON as a text. Pure.

``itemSchema`` is of OpenAPI 3.2; readers of 3.1 pass over it, and see the example.
"""

from typing import Any

from api.request_schema import inlined
from api.sse import END_FIELDS, POSITION, render_end, render_start, render_token
from shared.protocol import (
    EndEvent,
    FinishReason,
    JobStatus,
    StartEvent,
    Timings,
    TokenEvent,
    Usage,
)

_COUNT = {"type": "integer", "minimum": 0}
_TOKEN = {
    "text": {"type": "string"},
    "index": _COUNT | {"description": "of its first token, from 0"},
    "count": _COUNT | {"description": "of its tokens"},
}


def event_stream() -> dict[str, Any]:
    """For ``content`` of a response."""
    return {"text/event-stream": {"itemSchema": {"oneOf": _events()}, "example": _example()}}


def _events() -> list[dict[str, Any]]:
    end = EndEvent.model_json_schema()
    whole = inlined(end, end["$defs"])["properties"]
    return [
        _event("start", {"prompt_tokens": _COUNT}),
        _event("token", _TOKEN),
        _event("end", {name: whole[name] for name in sorted(END_FIELDS)}),
    ]


def _event(kind: str, fields: dict[str, Any]) -> dict[str, Any]:
    payload = {"type": "object", "required": list(fields), "properties": fields}
    data = {"type": "string", "contentMediaType": "application/json", "contentSchema": payload}
    event_id = {"type": "string", "pattern": f"^{POSITION.pattern}$"}
    return {
        "type": "object",
        "title": kind,
        "required": ["event", "id", "data"],
        "properties": {"event": {"const": kind}, "id": event_id, "data": data},
    }


def _example() -> str:
    usage = Usage(prompt_tokens=33, completion_tokens=1)
    end = EndEvent(
        status=JobStatus.COMPLETED,
        finish_reason=FinishReason.LENGTH,
        usage=usage,
        timings=Timings(),
        seed=1,
        attempts=1,
    )
    frames = (
        render_start(StartEvent(prompt_tokens=33)),
        render_token(TokenEvent(index=0, tokens=(1,), text="Gra", attempt=1)),
        render_end(end, 1),
    )
    return "".join(frame.data.decode() for frame in frames)
