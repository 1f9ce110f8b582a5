"""Makes a trial: one process for each worker of a candidate, on cores of its own, all going at once."""

import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Any

from pydantic import ValidationError

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
    processes: list[_Process] = []
    try:
        for filled in plans:
            processes.append(_Process(filled))
        for process in processes:
            process.expect_ready(deadline_s)
        for process in processes:
            process.send("go")
        return [process.report(deadline_s) for process in processes]
    finally:
        for process in processes:
            process.end()


class _Process:
    def __init__(self, plan: TrialPlan) -> None:
        self._words: IO[Any] = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-P", "-m", "cli.tether", "SIGKILL", str(os.getpid()), "--"),
                *(sys.executable, "-P", "-m", "worker.trial"),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            text=True,
            start_new_session=True,  # Ctrl-C is ours
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self._ear = threading.Thread(target=self._hear, daemon=True)
        self._ear.start()
        self.send(plan.model_dump_json())

    def send(self, line: str) -> None:
        assert self._process.stdin
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise TrialFailed(self._last_words()) from None

    def expect_ready(self, deadline_s: float) -> None:
        self._line(deadline_s)

    def report(self, deadline_s: float) -> TrialReport:
        try:
            return TrialReport.model_validate_json(self._line(deadline_s))
        except ValidationError as error:
            raise TrialFailed(f"its report cannot be read: {error.errors()[0]['msg']}") from None

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._ear.join(timeout=5)
        for pipe in (self._process.stdin, self._process.stdout, self._words):
            if pipe:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue

    def _line(self, deadline_s: float) -> str:
        try:
            line = self._lines.get(timeout=max(0.0, deadline_s - time.monotonic()))
        except queue.Empty:
            raise TrialFailed("it was not done when the time was over") from None
        if not line:
            self._process.wait()
            raise TrialFailed(self._last_words())
        return line

    def _last_words(self) -> str:
        self._process.wait()
        self._words.seek(0)
        lines = self._words.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"its process ended with code {self._process.returncode}"

    def _hear(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")


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
