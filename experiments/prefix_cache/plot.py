"""Time to the first token by the length of the prefix, in three ways."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from experiments.frame.canvas import draw_line, label, mark, panels, scale_y, whiskers
from experiments.frame.study import Run
from experiments.prefix_cache.judging import takeaway

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WAYS = (
    ("recompute", "computed again"),
    ("restore", "restored from a snapshot"),
    ("same slot", "still in the same slot"),
)


def draw(runs: Sequence[Run]) -> "Figure":
    figure, (axes,) = panels(1, takeaway(runs[0].figures), others=[run.label for run in runs[1:]])
    for run in reversed(runs):
        rows = run.figures["rows"]
        for number, (way, name) in enumerate(_WAYS):
            spreads = [row[way] for row in rows]
            draw_line(
                axes,
                [row["prefix"] for row in rows],
                [spread["median"] for spread in spreads],
                number,
                name,
                is_other=run is not runs[0],
                errors=whiskers(spreads),
            )
    mark(axes, [row["prefix"] for row in runs[0].figures["rows"]])
    scale_y(axes)
    label(axes, "tokens of the prefix (log)", "ms to the first token (log)")
    return figure
