"""The books of the service, compared with what clients were told: every accepted job ended once and is
counted once, every token too."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import httpx

from shared.connection import connect
from shared.keys import JOBS, job_key, stream_key
from shared.protocol import EndEvent, JobStatus
from tests.acceptance.crowd import Client
from tests.service import Running, wait_until

END_DEADLINE_S = 120.0
Ends = dict[str, EndEvent]


class Ledger:
    """From here on: which jobs are new, and by how much the totals grow. It looks into Redis itself
    for what the HTTP interface could hide (a second end, a job whose acceptance nobody heard of)."""

    def __init__(self, service: Running) -> None:
        self._url = service.url  #: an `up` that follows on the same folder is to have it too
        self._redis_url = service.redis_url
        self._ids_before = self._all_ids()
        self._totals_before = _totals(service.url)

    def _all_ids(self) -> set[str]:
        with connect(self._redis_url) as redis:
            reply: Any = redis.zrange(JOBS, 0, -1)
        return {job_id.decode() for job_id in reply}

    def close(self, told: Sequence[Client] = ()) -> Ends:
        """Waits until every job accepted since has ended, and compares. Job id -> terminal event."""
        accepted = sorted(self._all_ids() - self._ids_before)
        assert {client.job_id for client in told} <= set(accepted), "a job is not in the list"
        wait_until(lambda: self._all_final(accepted), END_DEADLINE_S, "all accepted jobs end")
        ends = self._ends(accepted)
        self._compare_totals(_totals(self._url), ends)
        for client in told:
            end = ends[client.job_id]
            told_end = end.model_dump(mode="json", include=set(client.end))
            assert client.end == told_end, f"{client} was told another end than {told_end}"
            assert client.num_tokens == end.usage.completion_tokens, f"{client}: {end.usage}"
        return ends

    def _all_final(self, job_ids: Sequence[str]) -> bool:
        with connect(self._redis_url) as redis, redis.pipeline(transaction=False) as pipe:
            for job_id in job_ids:
                pipe.hget(job_key(job_id), "status")
            return all(JobStatus(status.decode()).is_final for status in pipe.execute())

    def _ends(self, job_ids: Sequence[str]) -> Ends:
        with connect(self._redis_url) as redis, redis.pipeline(transaction=False) as pipe:
            for job_id in job_ids:
                pipe.xrange(stream_key(job_id))
            streams = pipe.execute()
        found: dict[str, list[bytes]] = {
            job_id: [fields[b"d"] for _, fields in entries if fields[b"k"] == b"end"]
            for job_id, entries in zip(job_ids, streams, strict=True)
        }
        not_once = {job_id: len(ends) for job_id, ends in found.items() if len(ends) != 1}
        assert not not_once, f"jobs with another number of ends than one: {not_once}"
        return {job_id: EndEvent.model_validate_json(ends[0]) for job_id, ends in found.items()}

    def _compare_totals(self, totals: dict[str, int], ends: Ends) -> None:
        statuses = Counter(end.status for end in ends.values())
        expected = {
            "ended": len(ends),
            "completed": statuses[JobStatus.COMPLETED],
            "failed": statuses[JobStatus.FAILED],
            "cancelled": statuses[JobStatus.CANCELLED],
            "generated_tokens": sum(end.usage.completion_tokens for end in ends.values()),
            "prompt_tokens": sum(end.usage.prompt_tokens for end in ends.values()),
        }
        growth = {name: totals[name] - self._totals_before[name] for name in totals}
        assert growth == expected, f"the totals grew by {growth}, not by {expected}"


def _totals(url: str) -> dict[str, int]:
    body = wait_until(lambda: _get(url, "/metrics"), END_DEADLINE_S, "/metrics answers")
    statuses = {name: body["jobs"][name] for name in ("completed", "failed", "cancelled")}
    return statuses | {
        "ended": body["total_requests"],
        "generated_tokens": body["total_tokens_generated"],
        "prompt_tokens": body["prompt_tokens_total"],
    }


def _get(url: str, path: str) -> dict[str, Any] | None:
    """``None`` while the gateway is away."""
    try:
        response = httpx.get(url + path, timeout=30)
    except httpx.TransportError:
        return None
    return response.json() if response.status_code == 200 else None


def text_of(url: str, job_id: str) -> str:
    job = wait_until(lambda: _get(url, f"/jobs/{job_id}"), END_DEADLINE_S, f"job {job_id} is told")
    return str(job["text"])
