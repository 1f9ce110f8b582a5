"""Quality against speed, with memory as the size of the mark, for one sequence and for many."""

from collections.abc import Sequence
from math import sqrt
from typing import TYPE_CHECKING

from experiments.frame.canvas import label, panels
from experiments.frame.names import name_points
from experiments.frame.study import Figures, Run
from experiments.quantization.judging import SEQUENCES, speed_of, takeaway

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LEAST_AREA = 30.0
_MEMORY_AREA = 270.0
_OTHER = "#999999"


def draw(runs: Sequence[Run]) -> "Figure":
    figure, axes = panels(
        2, takeaway(runs[0].figures), others=[run.label for run in runs[1:]], shown_as="crosses"
    )
    shown = list(zip(axes, (1, SEQUENCES[-1]), ("pareto_chat", "pareto_batch"), strict=True))
    for one, sequences, front in shown:
        for run in runs[1:]:
            _draw_other(one, run, runs[0], sequences)
        _draw(one, runs[0], sequences, set(runs[0].figures[front]))
        told = "one sequence: chat" if sequences == 1 else f"{sequences} sequences: batches"
        label(one, "tokens per second (area: memory)", "perplexity (less is better)", title=told)
    for one, sequences, _ in shown:
        _name(one, runs, sequences)
    return figure


def _known(run: Run) -> list[Figures]:
    return [row for row in run.figures["rows"] if row["perplexity"] is not None]


def _at(row: Figures, sequences: int) -> tuple[float, float]:
    return speed_of(row, sequences), row["perplexity"]


def _areas(rows: Sequence[Figures]) -> list[float]:
    largest = max((row["rss_mb"] for row in rows), default=1.0)
    return [_LEAST_AREA + _MEMORY_AREA * row["rss_mb"] / largest for row in rows]


def _draw_other(axes: "Axes", run: Run, ours: Run, sequences: int) -> None:
    """A line leads from each cross to our point of the same format."""
    points = {row["format"]: _at(row, sequences) for row in _known(ours)}
    for row in _known(run):
        x, y = _at(row, sequences)
        axes.scatter(x, y, marker="x", color=_OTHER)
        if row["format"] in points:
            axes.plot(
                *zip((x, y), points[row["format"]], strict=True),
                color=_OTHER,
                linewidth=0.8,
                zorder=1,
            )


def _draw(axes: "Axes", run: Run, sequences: int, front: set[str]) -> None:
    known = _known(run)
    for row, area in zip(known, _areas(known), strict=True):
        axes.scatter(
            *_at(row, sequences),
            s=area,
            facecolors="#888888" if row["format"] in front else "white",
            edgecolors="black",
            zorder=2,
        )
    axes.scatter([], [], s=60, facecolors="#888888", edgecolors="black", label="Pareto front")
    axes.scatter([], [], s=60, facecolors="white", edgecolors="black", label="beaten by another")
    axes.margins(x=0.22, y=0.25)


def _name(axes: "Axes", runs: Sequence[Run], sequences: int) -> None:
    known = _known(runs[0])
    name_points(
        axes,
        [(f"{row['told']}, {row['rss_mb']:.0f} MB", *_at(row, sequences)) for row in known],
        [sqrt(area) for area in _areas(known)],
        [_at(row, sequences) for run in runs[1:] for row in _known(run)],
    )
