"""The arithmetic behind the figures."""

import math
import random

import pytest

from experiments.figures import fit_line, percentile


def test_percentile_is_a_value_that_was_measured() -> None:
    values = [4.0, 1.0, 3.0, 2.0]
    assert [percentile(values, p) for p in (0, 25, 50, 75, 100)] == [1.0, 1.0, 2.0, 3.0, 4.0]


def test_percentile_of_nothing_is_not_a_number() -> None:
    assert math.isnan(percentile([], 50))


def test_exact_line_has_its_slope_and_no_error() -> None:
    line = fit_line([0, 1, 2, 3], [5, 7, 9, 11])
    assert line.slope == pytest.approx(2)
    assert line.error == pytest.approx(0, abs=1e-12)


def test_plain_error_is_that_of_least_squares() -> None:
    # By hand: the residuals are 1/6, -1/3, 1/6, with one degree of freedom, and x spreads by 2.
    line = fit_line([0, 1, 2], [1, 2, 4])
    assert line.slope == pytest.approx(1.5)
    assert line.plain_error == pytest.approx(math.sqrt((1 / 6) / 1 / 2))


def test_independent_residuals_leave_the_error_nearly_as_it_is() -> None:
    rng = random.Random(1)
    line = fit_line(range(500), [rng.gauss(0, 1) for _ in range(500)])
    assert line.error < 1.2 * line.plain_error


def test_correlated_residuals_widen_the_error() -> None:
    saw_tooth = [float(i % 60) for i in range(300)]
    line = fit_line(range(300), saw_tooth)
    assert line.lag1 > 0.8
    assert line.error > 3 * line.plain_error


def test_two_points_have_no_error_and_are_refused() -> None:
    with pytest.raises(ValueError, match="3 points"):
        fit_line([0, 1], [0, 1])
