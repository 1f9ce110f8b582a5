"""Latencies as histograms that can be added: names, buckets, and how they stand in a hash. Pure.

A field of the hash is ``h|<model>|<name>|<bucket>`` (how many fell into it, not cumulative; the last
bucket has no bound) or ``h|<model>|<name>|sum_us``; ``c|<model>|<name>`` is a plain counter of a model.
All are whole numbers that only grow, so hashes of workers, dead or alive, are summed field by field.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

#: Upper bounds in seconds. vLLM's (``vllm/v1/metrics/loggers.py``), so that dashboards translate.
_FIRST_TOKEN_S = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20),
    *(40, 80, 160, 640, 2560),
)  # fmt: skip
_TOKEN_S = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80),
)  # fmt: skip
_REQUEST_S = (
    *(0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680),
)  # fmt: skip
#: A step here takes 5 ms with one small sequence and a second with many of a large model.
_STEP_S = (
    *(0.001, 0.0025, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1),
    *(2.5, 5, 10),
)  # fmt: skip

BOUNDS_S: dict[str, tuple[float, ...]] = {
    "ttft": _FIRST_TOKEN_S,  #: submit to first token
    "itl": _TOKEN_S,  #: between two tokens of a job
    "e2e": _REQUEST_S,  #: submit to end
    "queue": _REQUEST_S,  #: submit to the first attempt
    "prefill": _REQUEST_S,  #: the last attempt's begin to its first token
    "decode": _REQUEST_S,  #: from there to the end
    "step": _STEP_S,  #: one round of the engine
}

Series = tuple[str, str]  #: model, name


@dataclass(frozen=True, slots=True)
class Histogram:
    """``counts`` has one element more than ``bounds_s``: what is longer than all."""

    bounds_s: tuple[float, ...]
    counts: tuple[int, ...]
    sum_s: float = 0.0

    @property
    def count(self) -> int:
        return sum(self.counts)

    def __add__(self, other: "Histogram") -> "Histogram":
        counts = tuple(a + b for a, b in zip(self.counts, other.counts, strict=True))
        return Histogram(self.bounds_s, counts, self.sum_s + other.sum_s)

    def __sub__(self, earlier: "Histogram") -> "Histogram":
        """What came since ``earlier``; nothing is less than nothing."""
        pairs = zip(self.counts, earlier.counts, strict=True)
        counts = tuple(max(0, now - then) for now, then in pairs)
        return Histogram(self.bounds_s, counts, max(0.0, self.sum_s - earlier.sum_s))

    def quantile(self, q: float) -> float | None:
        """Seconds, interpolated within its bucket as Prometheus' ``histogram_quantile`` does; of the
        last one its lower bound. ``None`` of no observation."""
        rank, seen = q * self.count, 0
        if not self.count:
            return None
        for i, count in enumerate(self.counts[:-1]):
            if count and seen + count >= rank:
                low_s = self.bounds_s[i - 1] if i else 0.0
                return low_s + (self.bounds_s[i] - low_s) * max(0.0, rank - seen) / count
            seen += count
        return self.bounds_s[-1]


def empty_histogram(name: str) -> Histogram:
    bounds_s = BOUNDS_S[name]
    return Histogram(bounds_s, (0,) * (len(bounds_s) + 1))


def bucket_of(name: str, seconds: float) -> int:
    """A bound belongs to its bucket (Prometheus' ``le``)."""
    return bisect_left(BOUNDS_S[name], seconds)


def bucket_field(model: str, name: str, bucket: int) -> str:
    return f"h|{model}|{name}|{bucket}"


def sum_field(model: str, name: str) -> str:
    return f"h|{model}|{name}|sum_us"


def counter_field(model: str, name: str) -> str:
    return f"c|{model}|{name}"


@dataclass(frozen=True, slots=True)
class Observed:
    """What hashes of totals hold beside ``shared.metrics.Totals``, by model and name."""

    histograms: dict[Series, Histogram]
    counters: dict[Series, int]

    def of_all_models(self, name: str) -> Histogram:
        total = empty_histogram(name)
        for (_, of), histogram in self.histograms.items():
            total = total + histogram if of == name else total
        return total

    def counted(self, name: str) -> int:
        """Over all models."""
        return sum(value for (_, of), value in self.counters.items() if of == name)


def read_observed(hashes: Iterable[Mapping[bytes, bytes]]) -> Observed:
    """Sums. What is no field of ours, or no number, counts nothing."""
    counts: dict[Series, list[int]] = {}
    sums_us: dict[Series, int] = {}
    counters: dict[Series, int] = {}
    for raw in hashes:
        for field, text in raw.items():
            if field[:2] not in (b"h|", b"c|") or not text.isdigit() or len(text) > 19:
                continue
            kind, _, rest = field.decode(errors="replace").partition("|")
            value = int(text)
            if kind == "c":
                model, _, name = rest.rpartition("|")
                counters[model, name] = counters.get((model, name), 0) + value
                continue
            model, _, name = rest.rpartition("|")[0].rpartition("|")
            bucket = rest.rpartition("|")[2]
            if name not in BOUNDS_S:
                continue
            series = model, name
            row = counts.setdefault(series, [0] * (len(BOUNDS_S[name]) + 1))
            if bucket == "sum_us":
                sums_us[series] = sums_us.get(series, 0) + value
            elif bucket.isdigit() and int(bucket) < len(row):
                row[int(bucket)] += value
    histograms = {
        series: Histogram(BOUNDS_S[series[1]], tuple(row), sums_us.get(series, 0) / 1e6)
        for series, row in counts.items()
    }
    return Observed(histograms, counters)
