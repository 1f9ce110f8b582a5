"""Every plot says what it shows: a takeaway, named axes, and another run beside."""

from pathlib import Path

import pytest
from matplotlib.colors import to_rgb

from cli.bench.canvas import save
from experiments.frame.study import Study
from experiments.whole import STUDIES
from tests.unit.experiments.recorded import run_of


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_a_plot_has_a_takeaway_and_named_axes_and_no_colours(study: Study, tmp_path: Path) -> None:
    run = run_of(study.name)
    figure = study.draw([run])
    assert figure.get_suptitle()
    for axes in figure.axes:
        assert axes.get_xlabel()
        assert axes.get_ylabel()
        for line in axes.lines:
            is_cap = line.get_linestyle() == "None"
            red, green, blue = to_rgb(line.get_markeredgecolor() if is_cap else line.get_color())
            assert red == green == blue
    assert all(path.stat().st_size > 5000 for path in save(figure, tmp_path / study.name))


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_another_run_is_drawn_beside_and_named(study: Study) -> None:
    run = run_of(study.name)
    alone, both = study.draw([run]), study.draw([run, run])
    assert run.label in both.get_suptitle()
    num_alone = sum(len(axes.get_children()) for axes in alone.axes)
    assert sum(len(axes.get_children()) for axes in both.axes) > num_alone
