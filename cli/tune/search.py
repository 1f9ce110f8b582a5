"""What to try next: a short look at all, full trials of what can win, then around the best, then again in
turn. Pure; time is an argument.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field

from cli.tune.candidates import Candidate
from cli.tune.decision import NOISY_SPREAD, Limits, Row, score, summarize
from cli.tune.measures import Measure, known_invariance

#: Of the budget, for the short look at all.
_COARSE_SHARE = 0.45
#: A format whose best layout so far has less than this of the best is not looked at any further.
_HOPELESS = 0.4
#: A short trial is not exact (on a noisy machine one gave twice its full trial's figure): what it puts
#: this near to the best gets a full one.
_MAY_WIN = 0.5
_MAX_FINALISTS = 3
#: Candidates this near to the best are measured again, in turn, so often.
_NEAR = 0.85
_REPEATS = 3
_NOISY_REPEATS = 5
#: Of a best one, that are tried.
_USUAL_NEIGHBOURS = 2
#: Until one was made.
_GUESSED_S = {True: 3.0, False: 6.0}


@dataclass(frozen=True, slots=True)
class Trial:
    candidate: Candidate
    is_short: bool
    stage: str


@dataclass(slots=True)
class Search:
    """Ask ``next``, make the trial, tell with ``note`` or ``fail`` how it went; and again until None."""

    candidates: Sequence[Candidate]
    default: Candidate
    single: Candidate
    limits: Limits
    budget_s: float
    neighbours: Callable[[Candidate], Iterable[Candidate]] = lambda _: ()
    making_s: Callable[[str], float] = lambda _: 0.0  #: until the file of a format is there
    measures: dict[Candidate, list[Measure]] = field(default_factory=dict)
    failures: dict[Candidate, str] = field(default_factory=dict)
    is_quick: bool = False  #: a short look is all
    is_out_of_time: bool = False
    _left_s: float = 0.0
    _stages: Generator[Trial, None, None] | None = None

    def next(self, left_s: float) -> Trial | None:
        self._left_s = left_s
        if self._stages is None:
            self._stages = self._run()
        return next(self._stages, None)

    def note(self, measure: Measure) -> None:
        self.measures.setdefault(measure.candidate, []).append(measure)

    def fail(self, candidate: Candidate, reason: str) -> None:
        self.failures[candidate] = reason

    def best(self) -> Candidate | None:
        rows = self._rows()
        fair = [row for row in rows if row.repeats] or rows
        return max(fair, key=self._score).measure.candidate if fair else None

    @property
    def planned_s(self) -> float:
        """About how long all of it takes before anything was tried, files that are made included; more than
        the budget where that is too short."""
        looks = {self.default, *self.candidates, self.single}
        num_full = min(len(looks), _MAX_FINALISTS + 2) + _USUAL_NEIGHBOURS
        num_full += (_REPEATS - 1) * min(len(looks), _MAX_FINALISTS + 1)
        trials_s = len(looks) * _GUESSED_S[True] + num_full * _GUESSED_S[False]
        return trials_s + self.planned_making_s

    @property
    def planned_making_s(self) -> float:
        return sum(self.making_s(name) for name in {c.weight_format for c in self.candidates})

    def _run(self) -> Generator[Trial, None, None]:
        yield from self._look_at_all()
        if self.is_quick:
            return
        yield from self._full(self._finalists(), "full")
        best = self.best()
        if best is not None:
            yield from self._full(self.neighbours(best), "around the best")
        yield from self._repeat()

    def _look_at_all(self) -> Generator[Trial, None, None]:
        for candidate in dict.fromkeys([self.default, *self.candidates, self.single]):
            share = 1.0 if self.is_quick else _COARSE_SHARE
            if self.budget_s - self._left_s > self.budget_s * share:
                self.is_out_of_time = True
                return
            if self._is_hopeless(candidate) or self._is_refused(candidate):
                continue
            yield from self._try(candidate, is_short=True, stage="first look")

    def _finalists(self) -> list[Candidate]:
        """The best, and then what the gain is told against."""
        rows = sorted(self._rows(), key=self._score, reverse=True)
        if not rows:
            return []
        top = self._score(rows[0])
        near = [row.measure.candidate for row in rows if self._score(row) >= top * _MAY_WIN]
        return [*near[:1], self.default, *near[1:_MAX_FINALISTS], self.single]

    def _repeat(self) -> Generator[Trial, None, None]:
        """In turn, so that what disturbs for a while disturbs all."""
        for number in range(2, _NOISY_REPEATS + 1):
            rows = [row for row in self._rows() if row.repeats]
            top = max((self._score(row) for row in rows), default=0.0)
            near = [row for row in rows if self._score(row) >= top * _NEAR]
            near = sorted(near, key=self._score, reverse=True)[:_MAX_FINALISTS]
            known = {row.measure.candidate: row for row in rows}
            again = dict.fromkeys(row.measure.candidate for row in near)
            again |= dict.fromkeys(c for c in (self.default,) if c in known)
            if number > _REPEATS and not any(known[c].spread > NOISY_SPREAD for c in again):
                return
            for candidate in again:
                if known[candidate].repeats < number:
                    yield from self._try(candidate, is_short=False, stage="again")

    def _full(self, candidates: Iterable[Candidate], stage: str) -> Generator[Trial, None, None]:
        for candidate in dict.fromkeys(candidates):
            if not any(not m.is_short for m in self.measures.get(candidate, ())):
                yield from self._try(candidate, is_short=False, stage=stage)

    def _try(
        self, candidate: Candidate, *, is_short: bool, stage: str
    ) -> Generator[Trial, None, None]:
        if candidate in self.failures:
            return
        expected_s = self.making_s(candidate.weight_format) + self.expected_s(candidate, is_short)
        if self._left_s < expected_s:
            self.is_out_of_time = True
            return
        yield Trial(candidate, is_short, stage)

    def expected_s(self, candidate: Candidate, is_short: bool) -> float:
        """Of a trial: as long as it took, or as the slowest of its kind."""
        alike = [m for ms in self.measures.values() for m in ms if m.is_short == is_short]
        same = [m.took_s for m in alike if m.candidate == candidate]
        return max(same or [m.took_s for m in alike], default=_GUESSED_S[is_short])

    def _is_hopeless(self, candidate: Candidate) -> bool:
        rows = self._rows()
        mine = [
            row for row in rows if row.measure.candidate.weight_format == candidate.weight_format
        ]
        if not mine or candidate in (self.default, self.single):
            return False
        return self._top(mine) < self._top(rows) * _HOPELESS

    def _is_refused(self, candidate: Candidate) -> bool:
        """By what a check of another layout has found."""
        if not self.limits.deterministic or candidate in (self.default, self.single):
            return False
        done = [made for measures in self.measures.values() for made in measures]
        return known_invariance(candidate, done) is False

    def _top(self, rows: Iterable[Row]) -> float:
        return max((self._score(row) for row in rows), default=0.0)

    def _score(self, row: Row) -> float:
        return score(row.measure, self.limits.objective)

    def _rows(self) -> list[Row]:
        """Of those that may be chosen; in a search that nothing passes, of all."""
        rows = [summarize(measures, self.limits) for measures in self.measures.values()]
        # What was not checked yet may still pass: its full trial checks it.
        return [r for r in rows if not r.refusal or r.measure.batch_invariant is None] or rows
