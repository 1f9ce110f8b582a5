"""The body of ``GET /metrics``: what the operators' numbers are called, made of the fleet. Pure."""

from pydantic import BaseModel, Field

from api.fleet import Fleet, WorkerView
from shared.metrics import Totals


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
    gateway: Process
    workers: tuple[WorkerMetrics, ...]


def metrics_of(fleet: Fleet, *, gateway_memory_mb: float, gateway_cpu_percent: float) -> Metrics:
    totals, live = fleet.totals, [worker for worker in fleet.workers if worker.is_live]
    depth = sum(fleet.depths.values())
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
        gateway=Process(
            memory_mb=round(gateway_memory_mb, 1), cpu_percent=round(gateway_cpu_percent, 1)
        ),
        workers=tuple(
            WorkerMetrics(**dict(worker), totals=fleet.totals_of[worker.incarnation])
            for worker in fleet.workers
        ),
    )
