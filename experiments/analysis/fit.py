"""Least squares: how a cost grows. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Fit:
    """``coefficients`` of 1, x, x squared; ``r2``: the share of the variance that it explains."""

    coefficients: tuple[float, ...]
    r2: float

    def at(self, x: float) -> float:
        return float(sum(c * x**power for power, c in enumerate(self.coefficients)))

    def to_json(self) -> dict[str, float]:
        named = dict(zip("abc", self.coefficients, strict=False))
        return named | {"r2": self.r2}


def fit_polynomial(xs: Sequence[float], ys: Sequence[float], degree: int) -> Fit:
    """Raises ``ValueError`` where there are no more different points than coefficients."""
    if len(xs) != len(ys) or len(set(xs)) <= degree + 1:
        raise ValueError(f"{len(set(xs))} points for {degree + 1} coefficients and their error")
    x, y = np.asarray(xs, float), np.asarray(ys, float)
    # Powers of numbers near 1 can be told apart, those of thousands hardly.
    scale = float(np.abs(x).max()) or 1.0
    powers = np.vander(x / scale, degree + 1, increasing=True)
    found, *_ = np.linalg.lstsq(powers, y, rcond=None)
    rest = float(((y - powers @ found) ** 2).sum())
    total = float(((y - y.mean()) ** 2).sum())
    coefficients = tuple(float(c) / scale**power for power, c in enumerate(found))
    return Fit(coefficients, 1 - rest / total if total else 1.0)


def growth_exponent(xs: Sequence[float], ys: Sequence[float]) -> float:
    """``p`` of y ~ x**p, over positive points. Raises ``ValueError`` if there are fewer than "
    "two."""
    points = [(math.log(x), math.log(y)) for x, y in zip(xs, ys, strict=True) if x > 0 and y > 0]
    if len({x for x, _ in points}) < 2:
        raise ValueError("two points are needed to see how something grows")
    logs = np.asarray(points)
    slope: float = np.polyfit(logs[:, 0], logs[:, 1], 1)[0]
    return float(slope)
