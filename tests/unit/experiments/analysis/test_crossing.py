"""Where one curve falls below another."""

import pytest

from experiments.analysis.crossing import crossing


def test_it_lies_between_the_points_around_it() -> None:
    assert crossing([0, 10, 20], [5, 5, 5], [0, 10, 20]) == pytest.approx(5)


def test_a_curve_that_is_below_from_the_start_crosses_there() -> None:
    assert crossing([64, 128], [1, 1], [400, 740]) == 64


def test_a_curve_that_ends_above_never_crosses_for_good() -> None:
    assert crossing([1, 2, 3], [5, 1, 9], [4, 4, 4]) is None
    assert crossing([], [], []) is None


def test_the_last_crossing_counts() -> None:
    assert crossing([1, 2, 3, 4], [0, 6, 4, 0], [5, 5, 5, 5]) == pytest.approx(2.5)
