"""``mini-vllm cache warm``: has a running service compute what prompts begin with, and waits for it."""

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx

from cli.job import EXIT_INTERRUPTED, check_completed, follow, submit
from cli.service import RequestFailed, make_client


def read_text(source: str) -> str:
    """Of a file, or of standard input for ``-``, without a line end at its end: editors put it there, and
    no prompt has it. Raises ``OSError`` or ``RequestFailed``."""
    raw = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    try:
        text = raw.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise RequestFailed(f"{source}: is not UTF-8 text") from None
    if not text:
        raise RequestFailed(f"{source}: is empty")
    return text


def warm(url: str, body: dict[str, Any], *, api_key: str | None) -> str:
    """What was done, in words. Ctrl-C cancels the job. Raises ``ServiceError``."""
    end: dict[str, Any] = {}
    worker = "a worker"
    with make_client(url, api_key) as client:
        job = submit(client, "/cache/warm", body)
        try:
            for event in follow(client, job):
                end = event.data
            worker = _worker_of(client, job) or worker
        except KeyboardInterrupt:
            with suppress(httpx.HTTPError):
                client.delete(job["links"]["job"])
            sys.exit(EXIT_INTERRUPTED)
    check_completed(end)
    return outcome_of(end, worker, is_public=bool(body.get("public")))


def _worker_of(client: httpx.Client, job: dict[str, Any]) -> str | None:
    """A stream does not name it. ``None`` if it is not to be had: the job is done all the same."""
    try:
        response = client.get(job["links"]["job"])
        return response.json().get("worker") if response.is_success else None
    except (httpx.HTTPError, ValueError):
        return None


def outcome_of(end: dict[str, Any], worker: str, *, is_public: bool) -> str:
    """Of the data of an end event. Pure."""
    usage, prefill_s = end["usage"], end["timings"].get("prefill_s")
    total, cached = usage["prompt_tokens"], usage["cached_tokens"]
    computed = f"{total - cached} of {total} tokens computed"
    took = f" in {prefill_s:.2f} s" if prefill_s is not None else ""
    known = f", {cached} were there" if cached else ""
    whose = "all keys" if is_public else "this key"
    return f"{computed}{took} on {worker}{known}; jobs of {whose} start from them on its host"
