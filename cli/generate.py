"""`mini-vllm generate`: submits to a running service and prints tokens as they come."""

import io
import sys
from contextlib import suppress
from typing import Any

import httpx

from cli.job import EXIT_BROKEN_PIPE, EXIT_INTERRUPTED, check_completed, follow, submit
from cli.service import make_client


def generate(
    url: str, body: dict[str, Any], *, api_key: str | None = None, shows_stats: bool = False
) -> None:
    """Ctrl-C cancels the job. Raises ``ServiceError`` for a job that did not complete."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal may not know every character
    with make_client(url, api_key) as client:
        job = submit(client, "/generate", body)
        try:
            end = _print_stream(client, job)
        except (KeyboardInterrupt, BrokenPipeError) as stop:
            # Nobody reads on: the job need not go on either. If that cannot be said, it just does.
            with suppress(httpx.HTTPError):
                client.delete(job["links"]["job"])
            is_interrupted = isinstance(stop, KeyboardInterrupt)
            sys.exit(EXIT_INTERRUPTED if is_interrupted else EXIT_BROKEN_PIPE)
    if shows_stats:
        _print_stats(end)
    check_completed(end)


def _print_stream(client: httpx.Client, job: dict[str, Any]) -> dict[str, Any]:
    """The data of the end event."""
    end: dict[str, Any] = {}
    for event in follow(client, job):
        if event.kind == "token":
            sys.stdout.write(event.data["text"])
            sys.stdout.flush()
        elif event.kind == "end":
            sys.stdout.write("\n")
            end = event.data
    return end


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
