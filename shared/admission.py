"""Whether a job is taken: the bounds of the queue, what a refusal says, and when to come again. Pure."""

import math
from dataclasses import dataclass
from typing import Any

from shared.errors import (
    IdempotencyConflict,
    NoWorkerReady,
    QueueFull,
    RedisFull,
    ServiceError,
    TooManyJobs,
)
from shared.settings import Settings

#: Of a queue whose service nobody has measured yet, as if a job took so long.
_UNMEASURED_SERVICE_MS = 5_000
_MAX_RETRY_AFTER_S = 3600


@dataclass(frozen=True, slots=True)
class Limits:
    """Of what waits. ``max_owner_jobs`` 0: none."""

    max_queued_jobs: int
    max_queued_chars: int
    max_owner_jobs: int
    worker_grace_ms: int

    @classmethod
    def from_settings(cls, settings: Settings) -> "Limits":
        return cls(
            max_queued_jobs=settings.max_queued_jobs,
            max_queued_chars=settings.max_queued_chars,
            max_owner_jobs=settings.max_queued_jobs_per_key,
            worker_grace_ms=round(settings.worker_grace_s * 1000),
        )


def retry_after_s(num_queued: int, service_ms: int, slots: int) -> int:
    """Until half of what waits is served, by Little's law: ``slots`` jobs at once, each of which took
    ``service_ms`` on average of late (0: nobody knows). At least 1, at most an hour."""
    per_job_s = (service_ms or _UNMEASURED_SERVICE_MS) / 1000 / max(1, slots)
    return min(_MAX_RETRY_AFTER_S, max(1, math.ceil(per_job_s * num_queued / 2)))


def expected_wait_s(num_ahead: int, service_ms: int, slots: int, num_free: int) -> float | None:
    """Until a job with so many before it begins: none while a slot is free for it, then ``slots`` jobs
    at once, each of which takes ``service_ms`` on average (0: nobody knows). ``None``: nobody can say."""
    num_to_end = num_ahead - num_free + 1
    if slots < 1:
        return None
    if num_to_end <= 0:
        return 0.0
    return service_ms / 1000 * num_to_end / slots if service_ms > 0 else None


def refusal_of(reply: list[Any], limits: Limits, model: str) -> ServiceError:
    """What ``submit.lua`` says when it does not take a job."""
    match reply[0]:
        case b"conflict":
            return IdempotencyConflict()
        case b"memory":
            return RedisFull()
        case b"no_worker":
            return NoWorkerReady(
                f"No worker of the model {model} has been there for "
                f"{limits.worker_grace_ms / 1000:g} s; nothing was accepted. Start one."
            )
    count, num_queued, service_ms, slots = (int(number) for number in reply[1:5])
    wait_s = retry_after_s(num_queued, service_ms, slots)
    match reply[0]:
        case b"jobs":
            most = limits.max_queued_jobs
            return QueueFull(f"{count} jobs wait, at most {most} may.", retry_after_s=wait_s)
        case b"chars":
            most = limits.max_queued_chars
            words = f"Prompts of {count} characters wait; with this one they would pass {most}."
            return QueueFull(words, retry_after_s=wait_s)
        case b"owner":
            most = limits.max_owner_jobs
            words = f"{count} jobs of this key wait, at most {most} may (max_queued_jobs_per_key)."
            return TooManyJobs(words, retry_after_s=wait_s)
        case other:
            raise AssertionError(f"submit.lua answered {other!r}")
