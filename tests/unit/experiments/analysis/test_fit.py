"""Least squares and growth."""

import pytest

from experiments.analysis.fit import fit_polynomial, growth_exponent


def test_a_square_is_found_with_its_coefficients() -> None:
    xs = [16, 128, 512, 1024, 2048]
    fit = fit_polynomial(xs, [0.5 + 0.02 * x + 3e-6 * x * x for x in xs], 2)
    assert fit.coefficients == pytest.approx((0.5, 0.02, 3e-6))
    assert fit.r2 == pytest.approx(1)
    assert fit.at(100) == pytest.approx(2.53)
    assert set(fit.to_json()) == {"a", "b", "c", "r2"}


def test_r2_tells_how_much_a_line_misses_of_a_square() -> None:
    xs = list(range(1, 20))
    line = fit_polynomial(xs, [x * x for x in xs], 1)
    assert 0.9 < line.r2 < 0.99


def test_points_that_are_all_equal_are_fitted_wholly() -> None:
    assert fit_polynomial([1, 2, 3], [5, 5, 5], 1).r2 == 1


def test_too_few_points_are_refused() -> None:
    with pytest.raises(ValueError, match="2 points for 2 coefficients"):
        fit_polynomial([1, 2], [1, 2], 1)
    with pytest.raises(ValueError, match="1 points"):
        fit_polynomial([7, 7, 7], [1, 2, 3], 1)


@pytest.mark.parametrize("power", [1, 2, 2.5])
def test_growth_is_the_power_of_a_curve(power: float) -> None:
    xs = [10, 20, 40, 80]
    assert growth_exponent(xs, [3 * x**power for x in xs]) == pytest.approx(power)


def test_growth_needs_two_points() -> None:
    with pytest.raises(ValueError, match="two points"):
        growth_exponent([4, 4], [1, 2])
