"""The arithmetic of the experiments: percentiles, and slopes with their errors. Pure."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


def percentile(values: Sequence[float], percent: float) -> float:
    """Nearest rank: a value that was measured. ``nan`` of nothing."""
    if not values:
        return math.nan
    ordered = sorted(values)
    rank = math.ceil(percent / 100 * len(ordered))
    return ordered[max(0, min(len(ordered), rank) - 1)]


@dataclass(frozen=True, slots=True)
class Line:
    """``slope`` in units of y per unit of x. ``plain_error`` is least squares' own standard error,
    which takes the residuals for independent; ``error`` is widened by their correlation."""

    slope: float
    error: float
    plain_error: float
    lag1: float  #: correlation of a residual with the one before


def fit_line(xs: Sequence[float], ys: Sequence[float]) -> Line:
    """Least squares. Needs three points.

    Samples of a memory once a second are far from independent (a saw-tooth of expiry, say), so that
    the plain error is too small. With residuals of correlation r from one to the next, as many are
    worth n (1 - r) / (1 + r) independent ones.
    """
    n = len(xs)
    if n < 3 or n != len(ys):
        raise ValueError(f"a line with an error needs 3 points or more (got {n} and {len(ys)})")
    mean_x, mean_y = statistics.fmean(xs), statistics.fmean(ys)
    spread = sum((x - mean_x) ** 2 for x in xs)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / spread
    rest = [y - mean_y - slope * (x - mean_x) for x, y in zip(xs, ys, strict=True)]
    square = sum(r * r for r in rest)
    plain = math.sqrt(square / (n - 2) / spread)
    lag1 = sum(a * b for a, b in pairwise(rest)) / square if square else 0.0
    used = min(max(lag1, 0.0), 0.99)
    return Line(slope, plain * math.sqrt((1 + used) / (1 - used)), plain, lag1)
