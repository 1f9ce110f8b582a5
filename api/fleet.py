"""The workers and their totals, read at one moment, so that no counter goes back or counts twice."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationError
from redis.asyncio import Redis

from shared.errors import Unavailable
from shared.failures import FailedStart
from shared.histograms import Observed, read_observed
from shared.keys import (
    PRIORITIES,
    SERVED,
    SERVICE_TOTALS,
    SUSPECT,
    WORKERS,
    beat_key,
    queue_key,
    queue_name,
    taken_key,
    worker_key,
    worker_totals_key,
)
from shared.metrics import Totals, add_totals
from shared.protocol import WorkerReport, WorkerState

_MAX_TRIES = 20
_QUEUES = (*PRIORITIES, SUSPECT)
_REPLIES_PER_WORKER = 4
#: Failed starts that one message tells of.
_MAX_REASONS = 4


class WorkerView(WorkerReport):
    """``lost``: its heartbeat has lapsed, and it is not buried yet."""

    state: WorkerState | Literal["lost"]  # type: ignore[assignment]
    jobs_held: int = 0
    last_beat_s: float | None = None

    @property
    def is_live(self) -> bool:
        return self.state != "lost"


@dataclass(frozen=True, slots=True)
class Fleet:
    totals: Totals  #: of the service, with its workers
    workers: tuple[WorkerView, ...]  #: by name
    totals_of: dict[str, Totals]  #: incarnation -> its own
    num_running: int
    depths: dict[str, int]  #: priority (or `suspect`) -> queued jobs of all models
    observed: Observed  #: of the service, with its workers
    depths_of: dict[str, dict[str, int]]  #: model -> priority (or `suspect`) -> queued jobs
    running_of: dict[str, int]  #: model -> jobs that workers hold


async def read_fleet(reads: Redis, model: str) -> Fleet:
    """A worker that is buried between the two reads would be missed: then they are repeated."""
    names, models = await _members(reads)
    models = sorted({model, *models})
    for _ in range(_MAX_TRIES):
        replies = await _read(reads, models, names)
        now_names = _names(replies[1])
        if now_names == names:
            return make_fleet(names, replies, models)
        names = now_names
    raise Unavailable("The workers change too fast to be counted; try again.")


async def _members(reads: Redis) -> tuple[list[str], list[str]]:
    """The workers, and the models that one of them has served."""
    async with reads.pipeline(transaction=False) as pipe:
        pipe.smembers(WORKERS)
        pipe.hgetall(SERVED)
        workers, models = await pipe.execute()
    return _names(workers), _names(models)


def _names(members: Iterable[bytes]) -> list[str]:
    return sorted(name.decode(errors="replace") for name in members)


async def _read(reads: Redis, models: Iterable[str], names: Iterable[str]) -> list[Any]:
    async with reads.pipeline(transaction=True) as pipe:
        pipe.time()
        pipe.smembers(WORKERS)
        pipe.hgetall(SERVICE_TOTALS)
        for model in models:
            for name in _QUEUES:
                pipe.llen(queue_key(queue_name(model, name)))
        for name in names:
            pipe.hgetall(worker_totals_key(name))
            pipe.hgetall(worker_key(name))
            pipe.exists(beat_key(name))
            pipe.scard(taken_key(name))
        return list(await pipe.execute())


def make_fleet(names: list[str], replies: list[Any], models: Sequence[str] = ("",)) -> Fleet:
    """From the replies in the order of ``_read``. Pure."""
    (seconds, micros), _, service = replies[:3]
    num_lengths = len(models) * len(_QUEUES)
    lengths, rest = iter(replies[3 : 3 + num_lengths]), replies[3 + num_lengths :]
    depths_of = {model: {name: next(lengths) for name in _QUEUES} for model in models}
    depths = {name: sum(row[name] for row in depths_of.values()) for name in _QUEUES}
    now_ms = seconds * 1000 + micros // 1000
    totals_of, workers, num_running, hashes = {}, [], 0, [service]
    running_of = dict.fromkeys(models, 0)
    for i, name in enumerate(names):
        totals, worker, beats, held = rest[i * _REPLIES_PER_WORKER : (i + 1) * _REPLIES_PER_WORKER]
        totals_of[name] = Totals.from_hash(totals)
        hashes.append(totals)
        num_running += held
        view = _worker_view(name, worker, bool(beats), held, now_ms)
        if view:
            workers.append(view)
            running_of[view.model] = running_of.get(view.model, 0) + held
    return Fleet(
        totals=add_totals([Totals.from_hash(service), *totals_of.values()]),
        workers=tuple(sorted(workers, key=lambda worker: (worker.name, worker.incarnation))),
        totals_of=totals_of,
        num_running=num_running,
        depths=depths,
        observed=read_observed(hashes),
        depths_of=depths_of,
        running_of=running_of,
    )


def why_not_ready(
    workers: Sequence[WorkerView], failures: Sequence[FailedStart], model: str
) -> str:
    """Pure."""
    if not workers and not failures:
        return (
            f"No worker is ready: none has reported; start one for the model {model}. A worker that "
            "cannot reach Redis, or log in to it, says so in its own log only."
        )
    reasons = [f"{worker.name} ({worker.model}) {worker.state}" for worker in workers]
    reasons += [f"{f.name} ({f.model}) failed: {f.message}" for f in failures[:_MAX_REASONS]]
    if len(failures) > _MAX_REASONS:
        reasons.append(f"{len(failures) - _MAX_REASONS} more failed, see /workers")
    return f"No worker is ready for the model {model}: {'; '.join(reasons)}"


def _worker_view(
    incarnation: str, worker: dict[bytes, bytes], is_live: bool, held: int, now_ms: int
) -> WorkerView | None:
    """``None`` for one that has not reported, or nothing that can be read."""
    try:
        report = WorkerReport.model_validate_json(worker.get(b"report", b""))
    except ValidationError:
        return None
    beat_ms = worker.get(b"beat_ms", b"")
    return WorkerView.model_validate(
        report.model_dump()
        | {
            "incarnation": incarnation,
            "state": report.state if is_live else "lost",
            "jobs_held": held,
            "last_beat_s": max(0, now_ms - int(beat_ms)) / 1000 if beat_ms.isdigit() else None,
        }
    )
