"""Server-sent events of a job: how an event looks, and the response that follows a job to its end.

An event's id counts the tokens delivered so far, so a client resumes with what it saw last.
"""

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from shared.errors import BadRequest
from shared.protocol import EndEvent, Event, StartEvent, TokenEvent

if TYPE_CHECKING:
    from api.hub import Hub

#: Of an ``EndEvent``, what a client is told.
END_FIELDS = {"status", "finish_reason", "usage", "timings", "error"}

KEEP_ALIVE = b": keep-alive\n\n"

#: json.dumps would make a new one for every event.
_to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

POSITION = re.compile(r"([0-9]{1,12})(\.end)?")


@dataclass(frozen=True, slots=True)
class Position:
    """What a client has seen; ``num_tokens`` is -1 before the start event."""

    num_tokens: int = -1
    has_end: bool = False

    @classmethod
    def parse(cls, text: str, field: str) -> "Position":
        match = POSITION.fullmatch(text.strip())
        if match is None:
            raise BadRequest(
                f"{field}: must be the id of an event: a number of tokens, 0 or more", field=field
            )
        return cls(int(match[1]), match[2] is not None)


@dataclass(frozen=True, slots=True)
class Frame:
    """A rendered event. ``end_index`` is the number of tokens a client has with it."""

    end_index: int
    data: bytes
    is_end: bool = False

    def is_after(self, position: Position) -> bool:
        return self.is_end or self.end_index > position.num_tokens


def render_start(event: StartEvent) -> Frame:
    return Frame(0, _render("start", "0", {"prompt_tokens": event.prompt_tokens}))


def render_token(event: TokenEvent) -> Frame:
    payload = {"text": event.text, "index": event.index, "count": len(event.tokens)}
    return Frame(event.end_index, _render("token", str(event.end_index), payload))


def render_end(event: EndEvent, num_tokens: int) -> Frame:
    payload = event.model_dump(mode="json", include=END_FIELDS)
    return Frame(num_tokens, _render("end", f"{num_tokens}.end", payload), is_end=True)


def render(event: Event, num_tokens: int) -> Frame:
    """``num_tokens`` that were delivered before it."""
    match event:
        case TokenEvent():
            return render_token(event)
        case StartEvent():
            return render_start(event)
        case EndEvent():
            return render_end(event, num_tokens)


def _render(kind: str, event_id: str, payload: dict[str, Any]) -> bytes:
    return f"event: {kind}\nid: {event_id}\ndata: {_to_json(payload)}\n\n".encode()


class EventStream(Response):
    """Follows a job for one client. A client that leaves frees its follower and nothing else."""

    media_type = "text/event-stream"

    def __init__(self, hub: "Hub", job_id: str, position: Position, keepalive_s: float) -> None:
        self.status_code = 200
        self.background = None
        self.init_headers({"Cache-Control": "no-cache", "X-Accel-Buffering": "no"})
        self._hub = hub
        self._job_id = job_id
        self._position = position
        self._keepalive_s = keepalive_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        headers = self.raw_headers
        await send({"type": "http.response.start", "status": self.status_code, "headers": headers})
        async with anyio.create_task_group() as group:
            group.start_soon(cancel_when_gone, receive, group.cancel_scope)
            with suppress(OSError):  # the client is gone
                await self._send_frames(send)
            group.cancel_scope.cancel()

    async def _send_frames(self, send: Send) -> None:
        next_frame = 0
        async with self._hub.follow(self._job_id) as job:
            while True:
                fresh = job.frames[next_frame:]
                next_frame += len(fresh)
                body = b"".join(f.data for f in fresh if f.is_after(self._position))
                if body:
                    await send({"type": "http.response.body", "body": body, "more_body": True})
                    continue
                if job.is_over:
                    break
                if not fresh and not await job.changed(self._keepalive_s):
                    ping = {"type": "http.response.body", "body": KEEP_ALIVE, "more_body": True}
                    await send(ping)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def cancel_when_gone(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
