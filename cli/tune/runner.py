"""Makes a trial: one process for each worker of a candidate, on cores of its own, all going at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from cli.line_process import LineProcess
from cli.tune.candidates import Candidate, shares
from shared.cores import UsableCores
from shared.errors import ServiceError
from shared.settings import WeightsSharing
from shared.trials import TrialPlan, TrialReport
from worker.placement import choose_cores


class TrialFailed(ServiceError):
    """The trial gave no figures."""

    code = "trial_failed"


@dataclass(frozen=True, slots=True)
class TrialTimes:
    window_s: float
    max_warmup_s: float
    is_short: bool
    check_s: float = 0.0


def place(candidate: Candidate, machine: UsableCores) -> list[tuple[int, ...]]:
    """Cores of each worker, as workers choose them that start one after the other."""
    free, chosen = list(machine.cores), []
    for _ in range(candidate.workers):
        cores = choose_cores(free, candidate.threads, machine)
        free = [core for core in free if core not in cores]
        chosen.append(cores)
    return chosen


def run_trial(
    plan: TrialPlan,
    candidate: Candidate,
    machine: UsableCores,
    concurrency: int,
    times: TrialTimes,
    deadline_s: float,
) -> list[TrialReport]:
    """``plan`` is filled in for each worker; ``deadline_s`` is on the monotonic clock. Leaves no process
    behind. Raises ``TrialFailed``."""
    plans = [
        plan.model_copy(
            update={
                "cores": cores,
                "slots": candidate.slots,
                "chunk_tokens": candidate.chunk_tokens,
                "clients": clients,
                "seed": plan.seed + number,
                "window_s": times.window_s,
                "max_warmup_s": times.max_warmup_s,
                "is_short": times.is_short,
                "check_s": times.check_s,
            }
        )
        for number, (cores, clients) in enumerate(
            zip(place(candidate, machine), shares(concurrency, candidate.workers), strict=True)
        )
    ]
    processes: list[LineProcess] = []
    try:
        for filled in plans:
            processes.append(LineProcess("worker.trial", error=TrialFailed))
            processes[-1].send(filled.model_dump_json())
        for process in processes:
            process.line(deadline_s)  # ready
        for process in processes:
            process.send("go")
        return [_report(process, deadline_s) for process in processes]
    finally:
        for process in processes:
            process.end()


def _report(process: LineProcess, deadline_s: float) -> TrialReport:
    try:
        return TrialReport.model_validate_json(process.line(deadline_s))
    except ValidationError as error:
        raise TrialFailed(f"its report cannot be read: {error.errors()[0]['msg']}") from None


def trial_plan(
    model_path: str,
    shapes: Sequence[Any],
    *,
    context_tokens: int,
    weights_sharing: WeightsSharing,
    stall_ms: float,
    seed: int,
) -> TrialPlan:
    """What all workers of a candidate have alike."""
    return TrialPlan(
        model_path=model_path,
        cores=(),
        slots=1,
        chunk_tokens=2,
        context_tokens=context_tokens,
        weights_sharing=weights_sharing,
        stall_ms=stall_ms,
        clients=0,
        shapes=tuple(shapes),
        seed=seed,
        window_s=1,
        max_warmup_s=1,
    )
