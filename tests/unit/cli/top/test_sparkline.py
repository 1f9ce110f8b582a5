import pytest

from cli.top.sparkline import STEPS, over_time, spark


def test_a_curve_starts_at_zero_and_is_blank_where_nothing_is_known() -> None:
    assert spark([0.0, None, 5.0, 10.0]) == f"{STEPS[0]} {STEPS[4]}{STEPS[7]}"


@pytest.mark.parametrize("values", [[], [None], [0.0, 0.0]])
def test_a_curve_of_nothing_is_flat(values: list[float | None]) -> None:
    assert set(spark(values)) <= {" ", STEPS[0]}


def test_values_lie_where_their_time_is_and_old_ones_are_left_out() -> None:
    readings = [(39.0, 9.0), (61.0, 1.0), (69.0, 3.0), (100.0, 5.0), (101.0, None)]
    cells = over_time(readings, now_s=100.0, span_s=60.0, num_cells=6, combine=max)
    assert cells == [None, None, 3.0, None, None, 5.0]
