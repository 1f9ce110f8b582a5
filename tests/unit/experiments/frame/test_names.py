"""No name in a plot covers another one."""

from itertools import combinations

import pytest

from experiments.frame.names import Box, overlap, place
from experiments.quantization.study import STUDY
from tests.unit.experiments.recorded import run_of


def test_what_touches_covers_nothing() -> None:
    assert overlap(Box(0, 0, 2, 2), Box(1, 1, 2, 2)) == 1
    assert overlap(Box(0, 0, 2, 2), Box(2, 0, 2, 2)) == 0
    assert overlap(Box(0, 0, 2, 2), Box(9, 9, 2, 2)) == 0


@pytest.mark.parametrize("spacing", [0.0, 5.0, 30.0, 100.0])
def test_names_of_points_in_a_row_are_apart(spacing: float) -> None:
    points = [Box(number * spacing, 0.0, 10.0, 10.0) for number in range(4)]
    crosses = [Box(0.0, 15.0, 6.0, 6.0)]
    named = place(points, [(60.0, 10.0)] * 4, crosses)
    assert len(named) == 4
    for one, other in combinations([*named, *crosses], 2):
        assert overlap(one, other) == 0
    assert all(overlap(name, point) == 0 for name in named for point in points)


def test_names_of_a_plot_are_apart() -> None:
    run = run_of("quantization")
    figure = STUDY.draw([run, run])
    figure.draw_without_rendering()
    for axes in figure.axes:
        boxes = [text.get_window_extent() for text in axes.texts]
        assert len(boxes) == len(run.figures["rows"]) > 2
        for one, other in combinations(boxes, 2):
            assert not one.overlaps(other)
