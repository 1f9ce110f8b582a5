"""Quality against speed, with memory as the size of the mark, for one sequence and for many."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from experiments.frame.canvas import label, panels
from experiments.frame.study import Run
from experiments.quantization.judging import SEQUENCES, speed_of, takeaway

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_POINTS_PER_MB = 0.9
_LEAST_POINTS = 30


def draw(runs: Sequence[Run]) -> "Figure":
    figure, axes = panels(2, takeaway(runs[0].figures), others=[run.label for run in runs[1:]])
    for one, sequences, front in zip(
        axes, (1, SEQUENCES[-1]), ("pareto_chat", "pareto_batch"), strict=True
    ):
        for run in runs[1:]:
            known = [row for row in run.figures["rows"] if row["perplexity"] is not None]
            one.scatter(
                [speed_of(row, sequences) for row in known],
                [row["perplexity"] for row in known],
                marker="x",
                color="#999999",
            )
        _draw(one, runs[0], sequences, set(runs[0].figures[front]))
        told = "one sequence: chat" if sequences == 1 else f"{sequences} sequences: batches"
        label(one, "tokens per second (area: memory)", "perplexity (less is better)", title=told)
    return figure


def _draw(axes: "Axes", run: Run, sequences: int, front: set[str]) -> None:
    known = [row for row in run.figures["rows"] if row["perplexity"] is not None]
    largest = max((row["rss_mb"] for row in known), default=1.0)
    for row in known:
        is_front = row["format"] in front
        axes.scatter(
            speed_of(row, sequences),
            row["perplexity"],
            s=_LEAST_POINTS + _POINTS_PER_MB * 300 * row["rss_mb"] / largest,
            facecolors="#888888" if is_front else "white",
            edgecolors="black",
            zorder=2,
        )
    for number, row in enumerate(sorted(known, key=lambda row: speed_of(row, sequences))):
        axes.annotate(
            f"{row['told']}, {row['rss_mb']:.0f} MB",
            (speed_of(row, sequences), row["perplexity"]),
            xytext=(0, 16 if number % 2 else -24),
            textcoords="offset points",
            ha="center",
            fontsize=7,
        )
    axes.scatter([], [], s=60, facecolors="#888888", edgecolors="black", label="Pareto front")
    axes.scatter([], [], s=60, facecolors="white", edgecolors="black", label="beaten by another")
    axes.margins(x=0.22, y=0.25)
