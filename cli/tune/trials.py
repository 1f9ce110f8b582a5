"""The trials of one model: its files in each format, the load, and how long a trial may take."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cli.tune.candidates import Candidate
from cli.tune.measures import Measure, measure
from cli.tune.runner import TrialTimes, run_trial, trial_plan
from shared.cores import UsableCores
from shared.settings import WeightsSharing
from shared.trials import RequestShape

#: A context of a trial is no longer than it has to be: the cache would only be filled with zeros.
_CONTEXT_STEP = 256
_SHORT_WINDOW_S = 0.4
_MAX_WARMUP_S = 10.0
#: How long the check of batch invariance may read its prompt.
_CHECK_S = 1.0


@dataclass(frozen=True, slots=True)
class Load:
    concurrency: int
    shapes: tuple[RequestShape, ...]

    @property
    def prompt_tokens(self) -> float:
        return sum(shape.prompt_tokens for shape in self.shapes) / len(self.shapes)

    @property
    def output_tokens(self) -> float:
        return sum(shape.output_tokens for shape in self.shapes) / len(self.shapes)

    @property
    def longest_tokens(self) -> int:
        return max(shape.prompt_tokens + shape.output_tokens for shape in self.shapes)

    @property
    def context_tokens(self) -> int:
        return -(-(self.longest_tokens + 1) // _CONTEXT_STEP) * _CONTEXT_STEP


@dataclass(slots=True)
class TrialBench:
    """``files`` by format; more may come while it is used."""

    files: Mapping[str, Path]
    load: Load
    machine: UsableCores
    stall_ms: float
    weights_sharing: WeightsSharing
    window_s: float
    max_context_tokens: int
    clock: Callable[[], float] = time.monotonic
    num_trials: int = 0

    def try_out(
        self, candidate: Candidate, *, is_short: bool, checks: bool, deadline_s: float
    ) -> Measure:
        """Raises ``TrialFailed``."""
        began_s = self.clock()
        self.num_trials += 1
        plan = trial_plan(
            str(self.files[candidate.weight_format]),
            self.load.shapes,
            context_tokens=min(self.load.context_tokens, self.max_context_tokens),
            weights_sharing=self.weights_sharing,
            stall_ms=self.stall_ms,
            seed=self.num_trials * 1000,
        )
        times = TrialTimes(
            window_s=_SHORT_WINDOW_S if is_short else self.window_s,
            max_warmup_s=max(1.0, min(_MAX_WARMUP_S, (deadline_s - began_s) / 2)),
            is_short=is_short,
            check_s=_CHECK_S if checks else 0.0,
        )
        reports = run_trial(plan, candidate, self.machine, self.load.concurrency, times, deadline_s)
        return measure(
            candidate,
            reports,
            self.load.shapes,
            is_short=is_short,
            stall_ms=self.stall_ms,
            took_s=self.clock() - began_s,
        )
