"""Tokens per second and the gap between tokens of each layout, at rest and beside a neighbour."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from experiments.frame.canvas import label, panels, scale_y, whiskers
from experiments.frame.study import Run
from experiments.layouts.judging import takeaway

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_KINDS = (("none", "at rest", "#777777", ""), ("busy", "neighbour on one core", "#dddddd", "//"))
_WIDTH = 0.38


def draw(runs: Sequence[Run]) -> "Figure":
    figure, (speed, gaps) = panels(
        2,
        takeaway(runs[0].figures),
        others=[run.label for run in runs[1:]],
        shown_as="white diamonds",
    )
    for axes, name in ((speed, "output_tokens_per_s"), (gaps, "itl_p99_ms")):
        _bars(axes, name, runs)
    scale_y(gaps)
    label(speed, "workers x threads of each", "output tokens per second, all clients")
    label(gaps, "workers x threads of each", "ms between tokens, 99th percentile (log)")
    return figure


def _bars(axes: "Axes", name: str, runs: Sequence[Run]) -> None:
    rows = runs[0].figures["rows"]
    for number, (kind, told, shade, hatch) in enumerate(_KINDS):
        for run in runs:
            shown = [
                (place, row[kind][name])
                for place, row in enumerate(run.figures["rows"])
                if row.get(kind) and name in row[kind]
            ]
            places = [place + (number - 0.5) * _WIDTH for place, _ in shown]
            spreads = [spread for _, spread in shown]
            middles = [spread["median"] for spread in spreads]
            if run is runs[0]:
                axes.bar(
                    places,
                    middles,
                    _WIDTH,
                    yerr=whiskers(spreads),
                    label=told,
                    color=shade,
                    edgecolor="black",
                    hatch=hatch,
                    capsize=3,
                    error_kw={"ecolor": "black"},
                )
            else:
                axes.plot(places, middles, "D", color="white", markeredgecolor="black")
    axes.set_xticks(range(len(rows)), [row["layout"] for row in rows])
    if name == "output_tokens_per_s":
        # Room above the bars, for the legend.
        axes.set_ylim(bottom=0, top=1.25 * axes.get_ylim()[1])
