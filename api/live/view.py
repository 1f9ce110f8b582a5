"""What a watcher is shown of the service now, made of what was read. Pure."""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field

from api.fleet import Fleet, WorkerView
from api.job_view import JobSummary
from api.live.reports import ReportLink
from api.mixed_weights import mixed_weights
from shared.admission import expected_wait_s
from shared.failures import FailedStart
from shared.keys import PRIORITIES, SUSPECT
from shared.protocol import WorkerState

_IDLE_FIELDS: Any = {"at": True, "workers": {"__all__": {"last_beat_s": True}}}


class QueueView(BaseModel):
    priority: str
    queued: int = Field(description="of all models")
    expected_wait_s: float | None = Field(
        description="of a job of the gateway's own model that would be submitted now; null where nobody "
        "can say"
    )


class TotalsView(BaseModel):
    """As in `GET /metrics`."""

    completed: int
    failed: int
    cancelled: int
    generated_tokens: int
    prompt_tokens: int


class View(BaseModel):
    at: float = Field(description="seconds of Redis' clock")
    scope: Literal["all", "own"]
    model: str = Field(description="of the gateway")
    models: list[str] = Field(description="that can be asked for")
    workers: tuple[WorkerView, ...] | None
    failures: tuple[FailedStart, ...] | None
    warnings: tuple[str, ...] | None
    queue: list[QueueView]
    running: int
    jobs: list[JobSummary] = Field(description="the newest that the key may see")
    totals: TotalsView | None
    reports: list[ReportLink]

    def essence(self) -> dict[str, Any]:
        """Without what grows while nothing happens: two views that are alike need not both be shown."""
        return self.model_dump(exclude=_IDLE_FIELDS)


class Sight(BaseModel):
    """What is the same for all watchers at one moment."""

    at: float
    model: str
    models: list[str]
    queue: list[QueueView]
    running: int
    workers: tuple[WorkerView, ...]
    failures: tuple[FailedStart, ...]
    totals: TotalsView
    reports: list[ReportLink]

    def view(self, jobs: list[JobSummary], *, shows_all: bool) -> View:
        return View(
            at=self.at,
            scope="all" if shows_all else "own",
            model=self.model,
            models=self.models,
            workers=self.workers if shows_all else None,
            failures=self.failures if shows_all else None,
            warnings=mixed_weights(self.workers) if shows_all else None,
            queue=self.queue,
            running=self.running,
            jobs=jobs,
            totals=self.totals if shows_all else None,
            reports=self.reports,
        )


def totals_view(fleet: Fleet) -> TotalsView:
    totals = fleet.totals
    return TotalsView(
        completed=totals.jobs_completed,
        failed=totals.jobs_failed,
        cancelled=totals.jobs_cancelled,
        generated_tokens=totals.generated_tokens,
        prompt_tokens=totals.prompt_tokens,
    )


def queue_view(fleet: Fleet, model: str, service_ms: int) -> list[QueueView]:
    """``service_ms`` that a job of the model takes. Suspects are run alone, whenever that can be: of
    theirs nobody can say."""
    ready = [w for w in fleet.workers if w.model == model and w.state == WorkerState.READY]
    slots = sum(worker.slots for worker in ready)
    num_free = sum(max(0, worker.slots - worker.slots_used) for worker in ready)
    depths, num_ahead = fleet.depths_of.get(model, {}), 0
    rows = []
    for priority in PRIORITIES:
        num_ahead += depths.get(priority, 0)
        wait_s = expected_wait_s(num_ahead, service_ms, slots, num_free)
        rows.append(_row(fleet, priority, wait_s))
    return [*rows, _row(fleet, SUSPECT, None)]


def mean_ms(times: Sequence[bytes]) -> int:
    """0 of none. What is no number counts nothing."""
    whole = [int(ms) for ms in times if ms.isdigit() and len(ms) <= 15]
    return -(-sum(whole) // len(whole)) if whole else 0


def _row(fleet: Fleet, priority: str, wait_s: float | None) -> QueueView:
    rounded = None if wait_s is None else round(wait_s, 1)
    return QueueView(
        priority=priority, queued=fleet.depths.get(priority, 0), expected_wait_s=rounded
    )
