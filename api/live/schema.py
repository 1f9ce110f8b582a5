"""The events of ``GET /live`` for OpenAPI, like those of a job's stream (``api.event_schema``). Pure."""

from typing import Any

from pydantic import BaseModel

from api import examples
from api.live.events import History, render_history, render_point, render_view
from api.live.points import Point
from api.live.view import View
from api.request_schema import inlined


def live_events() -> dict[str, Any]:
    """For ``content`` of a response."""
    kinds: dict[str, type[BaseModel]] = {"history": History, "point": Point, "view": View}
    events = [_event(kind, payload) for kind, payload in kinds.items()]
    return {"text/event-stream": {"itemSchema": {"oneOf": events}, "example": _example()}}


def _event(kind: str, payload: type[BaseModel]) -> dict[str, Any]:
    schema = payload.model_json_schema(mode="serialization")
    whole = inlined(schema, schema.pop("$defs", {}))
    data = {"type": "string", "contentMediaType": "application/json", "contentSchema": whole}
    return {
        "type": "object",
        "title": kind,
        "required": ["event", "data"],
        "properties": {"event": {"const": kind}, "data": data},
    }


def _example() -> str:
    point, view = Point.model_validate(examples.POINT), View.model_validate(examples.VIEW)
    frames = (render_history([point]), render_point(point), render_view(view))
    return b"".join(frames).decode()
