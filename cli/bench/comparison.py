"""What several rounds say together, and how two servers compare in them. Pure."""

import statistics
from collections.abc import Sequence

from cli.bench.figures import Figures

Spread = dict[str, float]  #: median, min, max

_COMPARED = (
    "request_throughput",
    "request_goodput",
    "output_throughput",
    "total_token_throughput",
    *(
        f"{part}_{name}_ms"
        for name in ("ttft", "tpot", "itl", "e2el")
        for part in ("median", "p99")
    ),
    "median_during_ms",
    "p99_during_ms",
    "max_during_ms",
)


def over_rounds(rounds: Sequence[Figures]) -> dict[str, Spread]:
    """Of each figure that has a value in any round."""
    names = dict.fromkeys(name for figures in rounds for name in figures)
    values = {n: [v for figures in rounds if (v := figures.get(n)) is not None] for n in names}
    return {name: _spread(found) for name, found in values.items() if found}


def ratios(rounds: Sequence[Figures], others: Sequence[Figures]) -> dict[str, Spread]:
    """Of each round to the same round of the other: what else the machine did then cancels out. A round
    that only one of them has says nothing."""
    found: dict[str, list[float]] = {}
    for ours, theirs in zip(rounds, others, strict=False):
        for name in _COMPARED:
            value, other = ours.get(name), theirs.get(name)
            if value is not None and other:
                found.setdefault(name, []).append(value / other)
    return {name: _spread(values) for name, values in found.items()}


def _spread(values: Sequence[float]) -> Spread:
    return {
        "median": round(statistics.median(values), 3),
        "min": round(min(values), 3),
        "max": round(max(values), 3),
    }
