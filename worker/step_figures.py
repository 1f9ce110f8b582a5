"""What the engine observes of its steps: how long they take and how far apart a job's tokens are. Pure."""

from collections.abc import Iterable

from shared.histograms import BOUNDS_S, bucket_field, bucket_of, sum_field

_NAMES = ("step", "itl")


class StepFigures:
    """Counters since this process began, which only grow.

    The engine's thread writes and the heart's reads: each is one number, so what is read is at worst a
    step old. Buckets are those of ``shared.histograms``."""

    def __init__(self, model: str = "") -> None:
        self._counts = {name: [0] * (len(BOUNDS_S[name]) + 1) for name in _NAMES}
        self._sums_s = dict.fromkeys(_NAMES, 0.0)
        self._fields = {
            name: [bucket_field(model, name, i) for i in range(len(self._counts[name]))]
            for name in _NAMES
        }
        self._sum_fields = {name: sum_field(model, name) for name in _NAMES}
        self.num_calls = 0  #: of the model: each reads all its weights

    def step_done(self, step_s: float, gaps_s: Iterable[float], num_calls: int) -> None:
        """``gaps_s``: for each token that had one before it in its job, how long that was ago."""
        self._counts["step"][bucket_of("step", step_s)] += 1
        self._sums_s["step"] += step_s
        self.num_calls += num_calls
        counts, known_s, bucket = self._counts["itl"], -1.0, 0
        for gap_s in gaps_s:
            # Most sequences of a step have drawn in the step before: one search does for them.
            if gap_s != known_s:
                known_s, bucket = gap_s, bucket_of("itl", gap_s)
            counts[bucket] += 1
            self._sums_s["itl"] += gap_s

    def totals(self) -> dict[str, int]:
        """By the names of fields in the hash of totals, without what is still zero."""
        found = {
            self._fields[name][i]: count
            for name in _NAMES
            for i, count in enumerate(self._counts[name])
            if count
        }
        sums = {self._sum_fields[name]: round(self._sums_s[name] * 1e6) for name in _NAMES}
        return found | {field: value for field, value in sums.items() if value}
