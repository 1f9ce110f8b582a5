"""One run of the tuner: asks the search what to try, tries it, and stops in time or at Ctrl-C."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from cli.tune.candidates import Candidate
from cli.tune.format_files import FormatFiles
from cli.tune.measures import Measure, known_invariance
from cli.tune.search import Search, Trial
from cli.tune.trials import TrialBench
from shared.errors import ServiceError

#: A trial that is nearly done when the time is over may still end.
_GRACE_S = 1.0

Tell = Callable[[Trial, "Measure | None", str], None]


@dataclass(slots=True)
class Session:
    """``tell`` hears of each trial before (without a measure) and after it. ``checks``: whether to look
    if tokens depend on the batch."""

    search: Search
    bench: TrialBench
    files: FormatFiles
    tell: Tell
    checks: bool = True
    clock: Callable[[], float] = time.monotonic
    was_interrupted: bool = False
    problems: list[str] = field(default_factory=list)
    _end_s: float = 0.0

    def run(self) -> None:
        self._end_s = self.clock() + self.search.budget_s
        try:
            while trial := self.search.next(self._left_s()):
                self._make(trial)
        except KeyboardInterrupt:
            self.was_interrupted = True

    def _left_s(self) -> float:
        return self._end_s - self.clock()

    def _make(self, trial: Trial) -> None:
        candidate = trial.candidate
        self.tell(trial, None, "")
        try:
            # What leaves no time for its trial is not made to the end.
            needed_s = self.search.expected_s(candidate, trial.is_short)
            self.files.make(candidate.weight_format, lambda: self._left_s() - needed_s)
            made = self.bench.try_out(
                candidate,
                is_short=trial.is_short,
                checks=self._checks(trial),
                deadline_s=self._end_s + _GRACE_S,
            )
        except ServiceError as error:
            self._give_up(candidate, error.message)
            self.tell(trial, None, error.message)
            return
        if made.batch_invariant is None:
            made = replace(made, batch_invariant=known_invariance(candidate, self._done))
        self.search.note(made)
        self.tell(trial, made, "")

    def _checks(self, trial: Trial) -> bool:
        """Where only that may be chosen, the first look tells it: else full trials go to what is refused,
        and what passes gets none."""
        is_early = self.search.limits.deterministic or not trial.is_short
        is_known = known_invariance(trial.candidate, self._done) is not None
        return self.checks and is_early and not is_known

    def _give_up(self, candidate: Candidate, reason: str) -> None:
        self.search.fail(candidate, reason)
        self.problems.append(f"{candidate}: {reason}")
        if (
            candidate.weight_format not in self.files.paths
        ):  # it could not be made: none of its kind
            for other in self.search.candidates:
                if other.weight_format == candidate.weight_format:
                    self.search.fail(other, reason)

    @property
    def _done(self) -> list[Measure]:
        return [measure for measures in self.search.measures.values() for measure in measures]
