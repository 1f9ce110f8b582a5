"""What the service did between two moments, from the totals at both. Pure.

Totals are those of the service and not of a gateway: any gateway may take the second sample of what
another took the first of. They only grow, unless Redis was emptied or has lost its last moments.
"""

from pydantic import BaseModel, ConfigDict, ValidationError

from api.fleet import Fleet
from shared.histograms import BOUNDS_S, Histogram

#: A point stands for so long.
INTERVAL_S = 10
MAX_POINTS = 360
SPAN_S = INTERVAL_S * MAX_POINTS
#: Two samples that lie further apart say nothing of any one moment between them.
MAX_GAP_S = 6 * INTERVAL_S

#: Latencies of a point.
_NAMES = ("ttft", "itl", "e2e")
_QUANTILES = (50, 90, 99)
_MAX_BYTES = 16_384
#: More than counters of 64 bits come to together; what is larger was made up, and no float holds it.
_MAX_COUNT = 10**30


class Sample(BaseModel):
    """Totals at one moment; ``counts`` are the buckets of a histogram by its name."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    at: float  #: seconds of Redis' clock
    generated_tokens: int
    prompt_tokens: int
    ended: int
    failed: int
    counts: dict[str, tuple[int, ...]]

    @classmethod
    def of(cls, fleet: Fleet, at: float) -> "Sample":
        return cls(
            at=at,
            generated_tokens=fleet.totals.generated_tokens,
            prompt_tokens=fleet.totals.prompt_tokens,
            ended=fleet.totals.jobs_ended,
            failed=fleet.totals.jobs_failed,
            counts={name: fleet.observed.of_all_models(name).counts for name in _NAMES},
        )

    @classmethod
    def from_wire(cls, text: bytes | None) -> "Sample | None":
        """``None`` for what is none of ours, or of a version with other buckets."""
        try:
            sample = cls.model_validate_json(text or b"") if len(text or b"") < _MAX_BYTES else None
        except ValidationError:
            return None
        lengths = {name: len(BOUNDS_S[name]) + 1 for name in _NAMES}
        if not sample or {name: len(row) for name, row in sample.counts.items()} != lengths:
            return None
        return sample if all(0 <= count <= _MAX_COUNT for count in sample._all_counts()) else None

    def is_behind(self, earlier: "Sample") -> bool:
        """Something was counted once and is not any more: what came since cannot be known."""
        mine, theirs = self._all_counts(), earlier._all_counts()
        return any(now < then for now, then in zip(mine, theirs, strict=True))

    def _all_counts(self) -> list[int]:
        of_names = [count for name in _NAMES for count in self.counts[name]]
        return [self.generated_tokens, self.prompt_tokens, self.ended, self.failed, *of_names]


class Point(BaseModel):
    """Rates and latencies of the seconds before ``at``; a latency is null where nobody had one."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    at: float
    tokens_per_s: float
    prompt_tokens_per_s: float
    requests_per_s: float
    errors_per_s: float
    running: int
    queued: int
    ttft_p50_s: float | None = None
    ttft_p90_s: float | None = None
    ttft_p99_s: float | None = None
    itl_p50_s: float | None = None
    itl_p90_s: float | None = None
    itl_p99_s: float | None = None
    e2e_p50_s: float | None = None
    e2e_p90_s: float | None = None
    e2e_p99_s: float | None = None

    @classmethod
    def from_wire(cls, text: bytes | None) -> "Point | None":
        """``None`` for what is none of ours."""
        try:
            return cls.model_validate_json(text or b"") if len(text or b"") < _MAX_BYTES else None
        except ValidationError:
            return None


def point_between(
    earlier: Sample | None, later: Sample, *, running: int, queued: int
) -> Point | None:
    """``None`` where they are not of one count, or too far apart: ``later`` is a new beginning then."""
    if earlier is None or later.is_behind(earlier):
        return None
    elapsed_s = later.at - earlier.at
    if not 0 < elapsed_s <= MAX_GAP_S:
        return None

    def per_s(now: int, then: int) -> float:
        return round((now - then) / elapsed_s, 3)

    return Point(
        at=round(later.at, 3),
        tokens_per_s=per_s(later.generated_tokens, earlier.generated_tokens),
        prompt_tokens_per_s=per_s(later.prompt_tokens, earlier.prompt_tokens),
        requests_per_s=per_s(later.ended, earlier.ended),
        errors_per_s=per_s(later.failed, earlier.failed),
        running=running,
        queued=queued,
        **_latencies(earlier, later),
    )


def _latencies(earlier: Sample, later: Sample) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for name in _NAMES:
        since = _histogram(name, later) - _histogram(name, earlier)
        for percent in _QUANTILES:
            seconds = since.quantile(percent / 100)
            found[f"{name}_p{percent}_s"] = None if seconds is None else round(seconds, 5)
    return found


def _histogram(name: str, sample: Sample) -> Histogram:
    return Histogram(BOUNDS_S[name], sample.counts[name])
