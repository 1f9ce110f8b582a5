"""Totals as plain numbers: what workers count, and how many hashes become one. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Totals:
    """Counters since the data directory was new; fields are those of the hashes in Redis.

    ``e2e_ms`` is submit to end and ``busy_ms`` start of the last attempt to end, both summed over
    ended jobs, whose tokens are ``ended_tokens``; ``generated_tokens`` counts running jobs too.
    From ``cache_queries`` on they are what ``worker.cache_figures`` says, one by one.
    ``recovered_jobs`` went back to their queues when their worker died."""

    jobs_completed: int = 0
    jobs_failed: int = 0
    jobs_cancelled: int = 0
    e2e_ms: int = 0
    busy_ms: int = 0
    ended_tokens: int = 0
    generated_tokens: int = 0
    prompt_tokens: int = 0
    webhooks_delivered: int = 0
    webhooks_dropped: int = 0
    worker_deaths: int = 0
    recovered_jobs: int = 0
    cache_queries: int = 0
    cache_hits: int = 0
    cache_query_tokens: int = 0
    cache_hit_tokens: int = 0
    cache_restore_us: int = 0
    cache_saved_ms: int = 0
    snapshots_written: int = 0
    snapshot_bytes_written: int = 0
    snapshots_evicted: int = 0
    snapshots_refused: int = 0
    preemptions: int = 0
    parked: int = 0
    resumed_tokens: int = 0

    @classmethod
    def from_hash(cls, raw: Mapping[bytes, bytes]) -> "Totals":
        return cls(**{f.name: _whole(raw.get(f.name.encode(), b"0")) for f in fields(cls)})

    @property
    def jobs_ended(self) -> int:
        return self.jobs_completed + self.jobs_failed + self.jobs_cancelled

    @property
    def avg_latency_s(self) -> float:
        """Submit to end, per ended job."""
        return self.e2e_ms / 1000 / self.jobs_ended if self.jobs_ended else 0.0

    @property
    def tokens_per_s(self) -> float:
        """Output tokens per second of a job's own running time, over ended jobs."""
        return self.ended_tokens * 1000 / self.busy_ms if self.busy_ms else 0.0

    @property
    def cache_hit_rate(self) -> float:
        """The part of the prompt tokens looked up that was not computed."""
        return self.cache_hit_tokens / self.cache_query_tokens if self.cache_query_tokens else 0.0

    @property
    def restore_ms(self) -> float:
        """Of one job that started from a snapshot."""
        return self.cache_restore_us / 1000 / self.cache_hits if self.cache_hits else 0.0


def _whole(text: bytes) -> int:
    """What is no number counts nothing."""
    return int(text) if text.isdigit() and len(text) < 20 else 0


def add_totals(all_totals: Iterable[Totals]) -> Totals:
    rows = list(all_totals)
    return Totals(**{f.name: sum(getattr(row, f.name) for row in rows) for f in fields(Totals)})
