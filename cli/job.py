"""A job of a running service as a command line has it: submitted once, and followed to its end, while
the service is busy or away for a while."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx

from cli.asking import ask
from cli.service import MAX_OUTAGE_S, RETRY_PAUSE_S, RequestFailed, message_of
from cli.sse import ServerSentEvent, lines_of, read_events

DEFAULT_URL = "http://127.0.0.1:8000"
#: What shells say of a program that Ctrl-C ended.
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141


@dataclass(frozen=True, slots=True)
class JobEvent:
    kind: str  #: ``start``, ``token`` or ``end``
    data: dict[str, Any]


def submit(client: httpx.Client, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """Asks again while the service is busy or away: the idempotency key makes it one job."""
    headers = {"Idempotency-Key": uuid4().hex}

    def send() -> httpx.Response:
        try:
            return client.post(path, json=body, headers=headers)
        except UnicodeEncodeError:
            raise RequestFailed("the prompt is not valid UTF-8 text") from None

    job: dict[str, Any] = ask(client, send).json()
    return job


def follow(client: httpx.Client, job: dict[str, Any]) -> Iterator[JobEvent]:
    """Its events, each once; the last one is its end."""
    last_id, broken_since_s = "", None
    while True:
        try:
            for event in _events(client, job["links"]["stream"], last_id):
                last_id, broken_since_s = event.id, None
                yield JobEvent(event.event, json.loads(event.data))
                if event.event == "end":
                    return
        except (httpx.TransportError, _Away):
            pass
        broken_since_s = broken_since_s or time.monotonic()
        if time.monotonic() - broken_since_s > MAX_OUTAGE_S:
            raise RequestFailed("the stream broke and the service did not come back")
        time.sleep(RETRY_PAUSE_S)


def check_completed(end: dict[str, Any]) -> None:
    """Raises ``RequestFailed``. ``end`` is the data of the end event."""
    if end["status"] != "completed":
        error = end.get("error") or {}
        raise RequestFailed(error.get("message") or f"the job was {end['status']}")


class _Away(Exception):
    """The service answers that it cannot answer now."""


def _events(client: httpx.Client, path: str, last_id: str) -> Iterator[ServerSentEvent]:
    headers = {"Last-Event-ID": last_id} if last_id else {}
    with client.stream("GET", path, headers=headers) as response:
        if response.status_code >= 500:
            raise _Away
        if response.status_code != httpx.codes.OK:
            response.read()
            raise RequestFailed(message_of(response))
        yield from read_events(lines_of(response.iter_text()))
