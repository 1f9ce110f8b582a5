"""`mini-vllm generate`: submits to a running service and prints tokens as they come."""

import io
import json
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from uuid import uuid4

import httpx

from cli.service import (
    MAX_OUTAGE_S,
    RETRY_PAUSE_S,
    RequestFailed,
    make_client,
    message_of,
    retry_after_s,
)
from cli.sse import ServerSentEvent, read_events

DEFAULT_URL = "http://127.0.0.1:8000"
#: What shells say of a program that Ctrl-C ended.
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141


def generate(
    url: str, body: dict[str, Any], *, api_key: str | None = None, shows_stats: bool = False
) -> None:
    """Ctrl-C cancels the job. Raises ``ServiceError`` for a job that did not complete."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal may not know every character
    with make_client(url, api_key) as client:
        job = _submit(client, body)
        try:
            end = _print_stream(client, job["links"]["stream"])
        except (KeyboardInterrupt, BrokenPipeError) as stop:
            # Nobody reads on: the job need not go on either. If that cannot be said, it just does.
            with suppress(httpx.HTTPError):
                client.delete(job["links"]["job"])
            is_interrupted = isinstance(stop, KeyboardInterrupt)
            sys.exit(EXIT_INTERRUPTED if is_interrupted else EXIT_BROKEN_PIPE)
    if shows_stats:
        _print_stats(end)
    if end["status"] != "completed":
        error = end.get("error") or {}
        raise RequestFailed(error.get("message") or f"the job was {end['status']}")


def _submit(client: httpx.Client, body: dict[str, Any]) -> dict[str, Any]:
    """Asks again while the service is busy or away: the idempotency key makes it one job."""
    headers, end_s = {"Idempotency-Key": uuid4().hex}, time.monotonic() + MAX_OUTAGE_S
    while True:
        try:
            response = client.post("/generate", json=body, headers=headers)
        except UnicodeEncodeError:
            raise RequestFailed("the prompt is not valid UTF-8 text") from None
        except httpx.ConnectError:
            raise RequestFailed(
                f"nothing answers at {client.base_url}; start it with: make up (or: mini-vllm up)"
            ) from None
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise RequestFailed(f"{client.base_url}: {error}") from None
        except httpx.TransportError as error:
            wait_s, problem = RETRY_PAUSE_S, f"{client.base_url}: {error or type(error).__name__}"
        else:
            if response.status_code in (httpx.codes.ACCEPTED, httpx.codes.OK):
                job: dict[str, Any] = response.json()
                return job
            problem = message_of(response)
            if response.status_code not in (429, 503):
                raise RequestFailed(problem)
            wait_s = retry_after_s(response)
        if time.monotonic() + wait_s > end_s:
            raise RequestFailed(problem)
        print(f"{problem} Trying again in {wait_s:g} s.", file=sys.stderr)
        time.sleep(wait_s)


def _print_stream(client: httpx.Client, path: str) -> dict[str, Any]:
    """The data of the end event."""
    last_id, broken_since_s = "", None
    while True:
        try:
            for event in _events(client, path, last_id):
                last_id, broken_since_s = event.id, None
                data: dict[str, Any] = json.loads(event.data)
                if event.event == "token":
                    sys.stdout.write(data["text"])
                    sys.stdout.flush()
                elif event.event == "end":
                    sys.stdout.write("\n")
                    return data
        except (httpx.TransportError, _Away):
            pass
        broken_since_s = broken_since_s or time.monotonic()
        if time.monotonic() - broken_since_s > MAX_OUTAGE_S:
            raise RequestFailed("the stream broke and the service did not come back")
        time.sleep(RETRY_PAUSE_S)


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
        yield from read_events(response.iter_lines())


def _print_stats(end: dict[str, Any]) -> None:
    usage, timings = end["usage"], end["timings"]
    parts = [
        f"{usage['prompt_tokens']} prompt{_cached(usage)} and {usage['completion_tokens']} output tokens",
        f"first after {timings.get('ttft_s') or 0:.2f} s",
        f"{timings.get('total_s') or 0:.2f} s in all",
    ]
    if timings.get("tokens_per_s"):
        parts.append(f"{timings['tokens_per_s']:.1f} tokens/s")
    print(", ".join(parts) + f" ({end['finish_reason']})", file=sys.stderr)


def _cached(usage: dict[str, Any]) -> str:
    """What was not computed, where there was any."""
    cached = usage.get("cached_tokens") or 0
    return f" ({cached} cached)" if cached else ""
