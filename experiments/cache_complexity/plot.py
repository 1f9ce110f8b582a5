"""Both costs and their fits, and what the last token costs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from experiments.cache_complexity.judging import fit_of, takeaway
from experiments.frame.canvas import SHADES, draw_line, label, mark, panels, scale_y
from experiments.frame.study import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WAYS = (("recomputed", "without the cache"), ("cached", "with the cache"))


def draw(runs: Sequence[Run]) -> "Figure":
    figure, (totals, tokens) = panels(
        2, takeaway(runs[0].figures), others=[run.label for run in runs[1:]]
    )
    for run in reversed(runs):
        is_other = run is not runs[0]
        lengths = run.figures["lengths"]
        for number, (way, name) in enumerate(_WAYS):
            found = run.figures[way]
            draw_line(totals, lengths, found["total_s"], number, name, is_other=is_other)
            draw_line(tokens, lengths, found["token_ms"], number, name, is_other=is_other)
            fit = fit_of(found["fit"])
            if not is_other:
                fitted = [(n, y) for n in lengths if (y := fit.at(n)) > 0]
                totals.plot(
                    *zip(*fitted, strict=True), ":", color=SHADES[1], linewidth=3, alpha=0.6
                )
    totals.plot([], [], ":", color=SHADES[1], linewidth=3, alpha=0.6, label="a + bN + cN²")
    for axes in (totals, tokens):
        mark(axes, _doublings(runs[0].figures["lengths"]))
        scale_y(axes)
    label(totals, "tokens of the answer, N (log)", "seconds in all (log)", title="all N tokens")
    label(tokens, "tokens of the answer, N (log)", "ms (log)", title="the N-th token alone")
    return figure


def _doublings(lengths: Sequence[int]) -> list[float]:
    return [lengths[-1] / 2**power for power in range(4, -1, -1)]
