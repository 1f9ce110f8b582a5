"""Sixteen clients at once, each with one job that it submits and follows to its end, whatever breaks.

They do what the README tells a client to do: a submit that got no answer is sent again under the same
`Idempotency-Key`, and a stream that broke is resumed with `Last-Event-ID`. While they read they check
that no token is missing and none comes twice.
"""

import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pydoc_data.topics import topics
from threading import Event
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import httpx

from tests.service import sse_events, wait_until

DEADLINE_S = 150.0
#: Longer than the silence between two keep-alive comments of a stream.
_READ_TIMEOUT_S = 25.0
_PAUSE_S = 0.1

#: Characters of the prompts.
_LENGTHS = (12, 160, 40, 80, 400, 60, 20, 120, 50, 240, 30, 100, 16, 70, 200, 50)
_SAMPLINGS: tuple[dict[str, Any], ...] = (
    {"temperature": 0},
    {"temperature": 0.8, "repeat_penalty": 1.1, "presence_penalty": 0.3},
    {"temperature": 0.8, "frequency_penalty": 0.4},
    {"temperature": 0.8},
)
#: By number of the client. The first holds text back often and ends the job hardly ever.
_STOPS = {6: "e q", 13: [". ", "!"]}
#: By number of the client: answers that are held to a shape, which has no end before the job's.
_SHAPES: dict[int, dict[str, Any]] = {
    9: {
        "response_format": {
            "type": "json_schema",
            "json_schema": {
                "schema": {
                    "type": "array",
                    "minItems": 100,
                    "items": {
                        "type": "object",
                        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
                        "required": ["name", "age"],
                        "additionalProperties": False,
                    },
                }
            },
        }
    },
    12: {"grammar": 'root ::= ([a-z]{2,9} " "){300}', "logprobs": 2},
}


def _body(number: int) -> dict[str, Any]:
    body: dict[str, Any] = {
        "prompt": f"{number}. " + topics["compound"][37 * number :][: _LENGTHS[number]],
        "raw": number % 4 < 2,
        "max_tokens": 40 + number**3 // 67,
        "seed": 1000 + number,
        "ignore_eos": number not in _SHAPES,
        "priority": ("normal", "high", "low")[number % 3],
    }
    stop = {"stop": _STOPS[number]} if number in _STOPS else {}
    return body | _SAMPLINGS[number % len(_SAMPLINGS)] | stop | _SHAPES.get(number, {})


BODIES = tuple(_body(number) for number in range(16))


class Client:
    """One job of one client. The fields grow while it runs."""

    def __init__(self, url: str, body: dict[str, Any], stop: Event) -> None:
        self.job_id = ""
        self.text = ""
        self.num_tokens = 0
        self.num_breaks = 0
        self.end: dict[str, Any] = {}
        self._url = url
        self._body = body
        self._stop = stop
        self._num_starts = 0
        self._last_id = ""

    def run(self) -> None:
        end_s = time.monotonic() + DEADLINE_S
        headers = {"Idempotency-Key": uuid4().hex}
        with httpx.Client(base_url=self._url, timeout=_READ_TIMEOUT_S) as http:
            while not self.end:
                assert not self._stop.is_set(), "told to stop"
                assert time.monotonic() < end_s, f"not over in {DEADLINE_S} s: {self}"
                try:
                    if self.job_id:
                        self._follow(http)
                    else:
                        self._submit(http, headers)
                except httpx.TransportError:
                    self.num_breaks += 1
                self._stop.wait(0 if self.end else _PAUSE_S)

    def _submit(self, http: httpx.Client, headers: dict[str, str]) -> None:
        response = http.post("/generate", json=self._body, headers=headers)
        if response.status_code != 503:
            assert response.status_code in (200, 202), response.text
            self.job_id = response.json()["job_id"]

    def _follow(self, http: httpx.Client) -> None:
        headers = {"Last-Event-ID": self._last_id} if self._last_id else {}
        with http.stream("GET", f"/jobs/{self.job_id}/stream", headers=headers) as response:
            if response.status_code >= 500:
                return
            assert response.status_code == 200, f"{response.status_code} for {self}"
            for event, event_id, data in sse_events(response):
                assert not self._stop.is_set(), "told to stop"
                self._hear(event, event_id, json.loads(data))
        self.num_breaks += not self.end

    def _hear(self, event: str, event_id: str, data: dict[str, Any]) -> None:
        assert not self.end, f"{event} after the end: {self}"
        self._last_id = event_id
        if event == "start":
            self._num_starts += 1
            assert (self._num_starts, self.num_tokens) == (1, 0), f"start again: {self}"
        elif event == "token":
            assert data["index"] == self.num_tokens, f"{data} after {self}"
            self.num_tokens += data["count"]
            self.text += data["text"]
            assert event_id == str(self.num_tokens)
        else:
            assert (event, event_id) == ("end", f"{self.num_tokens}.end")
            self.end = data

    def __str__(self) -> str:
        return f"job {self.job_id or '(not accepted)'}, {self.num_tokens} tokens, {self.end}"


class Crowd:
    """Runs from ``with`` on; leaving it stops the clients that are not done."""

    def __init__(self, url: str, bodies: Sequence[dict[str, Any]] = BODIES) -> None:
        self._stop = Event()
        self.clients = [Client(url, body, self._stop) for body in bodies]
        self._threads = ThreadPoolExecutor(len(bodies))

    def __enter__(self) -> Self:
        self._runs = [self._threads.submit(client.run) for client in self.clients]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._stop.set()
        self._threads.shutdown()

    @property
    def num_tokens(self) -> int:
        return sum(client.num_tokens for client in self.clients)

    def wait_for_tokens(self, count: int, each: int = 0) -> None:
        """Until all of them have so many together, and each so many."""

        def are_there() -> bool:
            for run in self._runs:
                if run.done():
                    run.result()  # a client that failed
            return self.num_tokens >= count and min(c.num_tokens for c in self.clients) >= each

        wait_until(are_there, DEADLINE_S, f"the crowd has {count} tokens")

    def wait_for_end(self) -> list[Client]:
        wait(self._runs, timeout=DEADLINE_S + _READ_TIMEOUT_S)
        for run in self._runs:
            run.result(timeout=0)
        return self.clients
