"""`mini-vllm jobs tail`: the text of a job that somebody submitted, from its beginning and as it comes."""

import io
import os
import sys

import httpx

from cli.job import EXIT_BROKEN_PIPE, EXIT_INTERRUPTED, check_completed, follow
from cli.jobs.service import get
from cli.printable import printable


def tail(client: httpx.Client, job_id: str) -> None:
    """Follows it to its end, over outages. Whoever stops looking leaves it running. Raises ``ServiceError``
    for a job that did not complete."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal may not know every character
    try:
        _say_where_it_waits(client, job_id)
        end = {}
        for event in follow(client, {"links": {"stream": f"/jobs/{job_id}/stream"}}):
            if event.kind == "token":
                _write(event.data["text"])
            elif event.kind == "end":
                _write("\n")
                end = event.data
    except KeyboardInterrupt:
        print(
            f"\nThe job goes on. Follow it again: mini-vllm jobs tail {job_id}\n"
            f"End it: mini-vllm jobs cancel {job_id}",
            file=sys.stderr,
        )
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_BROKEN_PIPE)
    check_completed(end)


def _write(text: str) -> None:
    # In a file or pipe it is what the model wrote.
    sys.stdout.write(printable(text) if sys.stdout.isatty() else text)
    sys.stdout.flush()


def _say_where_it_waits(client: httpx.Client, job_id: str) -> None:
    job = get(client, job_id)
    if job["status"] == "queued":
        place = f" at place {job['position']}" if job.get("position") else ""
        print(f"It waits{place}, with {job['priority']} priority.", file=sys.stderr)
