"""The jobs of a running service: the newest, one by its id or the beginning of it, and its cancelling."""

import re
from collections.abc import Collection, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any

import httpx

from cli.asking import ask
from cli.service import RequestFailed

Job = dict[str, Any]

#: Of the newest; a job that is older has to be named in full.
MAX_SCANNED_JOBS = 2_000
MIN_PREFIX_CHARS = 4
#: What ends a job: so few that a slip of the finger hits another one are not enough. Tables show as many.
MIN_CANCEL_CHARS = 8
_PAGE_JOBS = 200
_MAX_NAMED = 4
_JOB_ID = re.compile(r"[0-9a-f]{32}")
_PREFIX = re.compile(r"[0-9a-f]{1,32}")


def newest(client: httpx.Client, page_jobs: int = _PAGE_JOBS) -> Iterator[Job]:
    """At most ``MAX_SCANNED_JOBS``; pages are read as they are needed."""
    before: str | None = None
    for _ in range(0, MAX_SCANNED_JOBS, page_jobs):
        params: dict[str, Any] = {"limit": page_jobs} | ({"before": before} if before else {})
        page = ask(client, partial(client.get, "/jobs", params=params)).json()
        yield from page["jobs"]
        before = page["next"]
        if before is None:
            return


def list_jobs(client: httpx.Client, limit: int, statuses: Collection[str]) -> list[Job]:
    """Newest first; of all statuses where none is named."""
    jobs = newest(client, _PAGE_JOBS if statuses else min(limit, _PAGE_JOBS))
    return list(islice((job for job in jobs if not statuses or job["status"] in statuses), limit))


def get(client: httpx.Client, job_id: str) -> Job:
    job: Job = ask(client, lambda: client.get(f"/jobs/{job_id}")).json()
    return job


def cancel(client: httpx.Client, job_id: str) -> Job:
    """As it is then: a worker that has not come to it yet has it running, and `cancelling`."""
    job: Job = ask(client, lambda: client.delete(f"/jobs/{job_id}")).json()
    return job


def find_id(client: httpx.Client, given: str, min_chars: int = MIN_PREFIX_CHARS) -> str:
    """The id that is meant: a whole one is not looked for. Raises ``RequestFailed``."""
    text = given.strip().lower().removeprefix("chatcmpl-").removeprefix("cmpl-")
    if _JOB_ID.fullmatch(text):
        return text
    if len(text) < min_chars or not _PREFIX.fullmatch(text):
        raise RequestFailed(
            f"{given[:40]!r} is no job id: 32 characters of 0-9 and a-f, or the first "
            f"{min_chars} or more of them; `mini-vllm jobs list` shows them"
        )
    return choose(text, (job["job_id"] for job in newest(client)))


def choose(prefix: str, job_ids: Iterable[str]) -> str:
    """The one that begins so. Pure. Raises ``RequestFailed``."""
    found = sorted({job_id for job_id in job_ids if job_id.startswith(prefix)})
    if len(found) == 1:
        return found[0]
    if not found:
        raise RequestFailed(
            f"no job of yours begins with {prefix}, of the newest {MAX_SCANNED_JOBS:,}; "
            "`mini-vllm jobs list` shows them, and an older one is found by its whole id"
        )
    named = ", ".join(found[:_MAX_NAMED]) + (", ..." if len(found) > _MAX_NAMED else "")
    raise RequestFailed(f"{len(found)} jobs begin with {prefix}: {named}; give more of the id")
