"""Tokens per second, and the time of a step with its bounds, by the number of sequences."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from experiments.batching.judging import takeaway
from experiments.frame.canvas import SHADES, draw_line, label, mark, panels, scale_y, whiskers
from experiments.frame.study import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(runs: Sequence[Run]) -> "Figure":
    figure, (speed, steps) = panels(
        2, takeaway(runs[0].figures), others=[run.label for run in runs[1:]]
    )
    for run in reversed(runs):
        rows, is_other = run.figures["rows"], run is not runs[0]
        counts = [row["sequences"] for row in rows]
        for axes, name in ((speed, "tokens_per_s"), (steps, "step_ms")):
            spreads = [row[name] for row in rows]
            draw_line(
                axes,
                counts,
                [spread["median"] for spread in spreads],
                0,
                "measured",
                is_other=is_other,
                errors=whiskers(spreads),
            )
    rows = runs[0].figures["rows"]
    counts = [row["sequences"] for row in rows]
    bounds = [row["bound_ms"] for row in rows]
    steps.plot(counts, bounds, "--", color=SHADES[1], label="roofline: no step is faster")
    speed.plot(
        counts,
        [n / ms * 1000 for n, ms in zip(counts, bounds, strict=True)],
        "--",
        color=SHADES[1],
        label="roofline",
    )
    steps.plot(
        counts, [row["memory_ms"] for row in rows], ":", color="#444444", label="memory alone"
    )
    knee = runs[0].figures["roofline_knee"]
    if knee is not None and counts[0] <= knee <= counts[-1]:
        for axes in (speed, steps):
            axes.axvline(knee, color=SHADES[2], linestyle=":", label=f"its knee: {knee:.1f}")
    mark(speed, counts)
    mark(steps, counts)
    scale_y(steps)
    speed.set_ylim(bottom=0)
    label(speed, "sequences at once (log)", "tokens per second, all together")
    label(steps, "sequences at once (log)", "ms between two tokens of a sequence (log)")
    return figure
