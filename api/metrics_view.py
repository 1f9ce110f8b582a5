"""The body of ``GET /metrics``: what the operators' numbers are called, made of the fleet. Pure."""

from collections.abc import Iterable

from pydantic import BaseModel, Field

from api.fleet import Fleet, WorkerView
from shared.histograms import Histogram, Observed
from shared.metrics import Totals
from shared.protocol import WorkerState


class JobCounts(BaseModel):
    queued: int
    running: int
    completed: int
    failed: int
    cancelled: int


class QueueDepths(BaseModel):
    high: int
    normal: int
    low: int
    suspect: int = Field(description="jobs that workers died of: they run alone")
    depth: int = Field(description="all of them")


class WebhookCounts(BaseModel):
    delivered: int
    dropped: int = Field(description="given up")


class PrefixCache(BaseModel):
    """What was computed of prompts, and kept for others that begin alike. Rates and times are over all
    jobs that were looked up; what is kept is that of live workers' hosts, each counted once."""

    queries: int = Field(description="jobs that were looked up")
    hits: int = Field(description="jobs that started from what was kept")
    prompt_tokens: int = Field(description="of the jobs that were looked up")
    tokens_saved: int = Field(description="prompt tokens that were not computed")
    hit_rate_tokens: float = Field(description="tokens_saved over prompt_tokens")
    seconds_saved: float = Field(description="estimated, from the measured rate of prefill")
    restore_ms_avg: float = Field(description="of one hit")
    resumed_tokens: int = Field(
        description="of parked or killed jobs, restored instead of computed again"
    )
    snapshots: int = Field(description="that are kept now")
    bytes: int = Field(description="of the snapshots that are kept now")
    written: int
    bytes_written: int
    evictions: int = Field(description="snapshots that made room for others")
    refused: int = Field(description="not written: there was no room, or the writer was behind")


class Latency(BaseModel):
    """Since the data directory was new, estimated within histogram buckets; null: none yet."""

    count: int
    avg_s: float | None
    p50_s: float | None
    p90_s: float | None
    p99_s: float | None

    @classmethod
    def of(cls, histogram: Histogram) -> "Latency":
        count = histogram.count
        return cls(
            count=count,
            avg_s=round(histogram.sum_s / count, 6) if count else None,
            p50_s=_rounded(histogram.quantile(0.5)),
            p90_s=_rounded(histogram.quantile(0.9)),
            p99_s=_rounded(histogram.quantile(0.99)),
        )


class Latencies(BaseModel):
    ttft: Latency = Field(description="submit to first token")
    itl: Latency = Field(description="between two tokens of a job")
    e2e: Latency = Field(description="submit to end")
    queue: Latency = Field(description="submit to the first attempt")
    prefill: Latency = Field(description="begin of the last attempt to its first token")
    decode: Latency = Field(description="first token of the last attempt to the end")
    step: Latency = Field(description="one round of an engine")


class Process(BaseModel):
    memory_mb: float
    cpu_percent: float = Field(description="of one core")


class WorkerMetrics(WorkerView):
    totals: Totals


class Metrics(BaseModel):
    """Totals count each job once, over all workers, and never go back."""

    total_requests: int = Field(description="jobs that ended, however they did")
    avg_latency_sec: float = Field(description="submit to end")
    tokens_per_sec_avg: float = Field(description="of a job while it ran, over ended jobs")
    total_tokens_generated: int
    memory_mb: float = Field(description="gateway and live workers")
    cpu_percent: float = Field(description="gateway and live workers; 100 is one core")
    jobs: JobCounts
    queue: QueueDepths
    prompt_tokens_total: int
    webhooks: WebhookCounts
    latencies: Latencies
    finish_reasons: dict[str, int] = Field(description="jobs that ended, by how they did")
    refused: dict[str, int] = Field(description="requests that were not taken, by the code of why")
    worker_deaths: int = Field(description="workers that died and were not told to")
    recovered_jobs: int = Field(description="jobs whose worker died, that were queued again")
    prefix_cache: PrefixCache
    preemptions: int = Field(description="jobs of low priority that made room for higher ones")
    parked: int = Field(description="jobs that left a worker with what was computed of them")
    gateway: Process
    workers: tuple[WorkerMetrics, ...]


def metrics_of(fleet: Fleet, *, gateway_memory_mb: float, gateway_cpu_percent: float) -> Metrics:
    totals, live = fleet.totals, [worker for worker in fleet.workers if worker.is_live]
    depth, observed = sum(fleet.depths.values()), fleet.observed
    return Metrics(
        total_requests=totals.jobs_ended,
        avg_latency_sec=round(totals.avg_latency_s, 6),
        tokens_per_sec_avg=round(totals.tokens_per_s, 3),
        total_tokens_generated=totals.generated_tokens,
        memory_mb=round(gateway_memory_mb + sum(w.memory_mb for w in live), 1),
        cpu_percent=round(gateway_cpu_percent + sum(w.cpu_percent for w in live), 1),
        jobs=JobCounts(
            queued=depth,
            running=fleet.num_running,
            completed=totals.jobs_completed,
            failed=totals.jobs_failed,
            cancelled=totals.jobs_cancelled,
        ),
        queue=QueueDepths(**fleet.depths, depth=depth),
        prompt_tokens_total=totals.prompt_tokens,
        webhooks=WebhookCounts(
            delivered=totals.webhooks_delivered, dropped=totals.webhooks_dropped
        ),
        latencies=Latencies(
            **{name: Latency.of(observed.of_all_models(name)) for name in Latencies.model_fields}
        ),
        finish_reasons=_by_suffix(observed, "ended_"),
        refused=_by_suffix(observed, "refused_"),
        worker_deaths=totals.worker_deaths,
        recovered_jobs=totals.recovered_jobs,
        prefix_cache=_prefix_cache(totals, live),
        preemptions=totals.preemptions,
        parked=totals.parked,
        gateway=Process(
            memory_mb=round(gateway_memory_mb, 1), cpu_percent=round(gateway_cpu_percent, 1)
        ),
        workers=tuple(
            WorkerMetrics(**dict(worker), totals=fleet.totals_of[worker.incarnation])
            for worker in fleet.workers
        ),
    )


def _by_suffix(observed: Observed, prefix: str) -> dict[str, int]:
    names = sorted({name for _, name in observed.counters if name.startswith(prefix)})
    return {name.removeprefix(prefix): observed.counted(name) for name in names}


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 6)


def _prefix_cache(totals: Totals, live: Iterable[WorkerView]) -> PrefixCache:
    hosts = _by_host(live)
    return PrefixCache(
        queries=totals.cache_queries,
        hits=totals.cache_hits,
        prompt_tokens=totals.cache_query_tokens,
        tokens_saved=totals.cache_hit_tokens,
        hit_rate_tokens=round(totals.cache_hit_rate, 4),
        seconds_saved=totals.cache_saved_ms / 1000,
        restore_ms_avg=round(totals.restore_ms, 3),
        resumed_tokens=totals.resumed_tokens,
        snapshots=sum(worker.num_snapshots for worker in hosts),
        bytes=sum(worker.snapshot_bytes for worker in hosts),
        written=totals.snapshots_written,
        bytes_written=totals.snapshot_bytes_written,
        evictions=totals.snapshots_evicted,
        refused=totals.snapshots_refused,
    )


def _by_host(live: Iterable[WorkerView]) -> list[WorkerView]:
    """Of the workers that share a host directory the one that looked into it last. One that waits or
    loads has not."""
    latest: dict[str, WorkerView] = {}
    for worker in live:
        if worker.state not in (WorkerState.READY, WorkerState.DRAINING):
            continue
        place = worker.host_dir_id or worker.incarnation
        if place not in latest or _age_s(worker) < _age_s(latest[place]):
            latest[place] = worker
    return list(latest.values())


def _age_s(worker: WorkerView) -> float:
    return float("inf") if worker.last_beat_s is None else worker.last_beat_s
