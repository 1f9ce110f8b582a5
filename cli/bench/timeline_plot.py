"""The timeline of a run: each request as a bar, and the tokens per second below it."""

from typing import TYPE_CHECKING

from cli.bench.canvas import new_figure
from cli.bench.plan import Point
from cli.bench.takeaways import of_timeline
from cli.bench.timeline import Timeline

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WAITS = ("white", "////")
_PREFILL = ("#bbbbbb", "")
_DECODE = ("#444444", "")


def draw_timeline(name: str, point: Point, timeline: Timeline) -> "Figure":
    height = min(9.0, 3.6 + 0.12 * len(timeline.bars))
    figure = new_figure(10, height)
    figure.suptitle(of_timeline(name, point, timeline), fontsize=11, wrap=True)
    above, below = figure.subplots(
        2, 1, sharex=True, gridspec_kw={"height_ratios": [max(1.2, height - 3.0), 1.2]}
    )
    _draw_bars(above, timeline)
    below.step(timeline.times_s, timeline.tokens_per_s, where="mid", color="black", linewidth=1.2)
    below.set_ylim(bottom=0)
    below.set_xlim(left=0)
    below.set_ylabel("tokens per second")
    below.set_xlabel("seconds since the first request was sent")
    for axes in (above, below):
        axes.grid(axis="x", color="#dddddd", linewidth=0.6)
        axes.set_axisbelow(True)
    return figure


def _draw_bars(axes: "Axes", timeline: Timeline) -> None:
    bars = timeline.bars
    rows = list(range(1, len(bars) + 1))
    # A server that tells nothing before the first text leaves it open how long its queue was.
    is_told = any(bar.began_s < bar.first_s for bar in bars)
    waits = "sent, nothing heard yet (queue)" if is_told else "no text yet (queue and prefill)"
    parts = (
        (waits, _WAITS, "sent_s", "began_s"),
        ("begun, no text yet (prefill)", _PREFILL, "began_s", "first_s"),
        ("text comes (decode)", _DECODE, "first_s", "ended_s"),
    )
    for label, look, begin, end in parts:
        starts = [getattr(bar, begin) for bar in bars]
        widths = [getattr(bar, end) - getattr(bar, begin) for bar in bars]
        if any(widths):
            axes.barh(
                rows,
                widths,
                left=starts,
                height=0.8,
                label=label,
                edgecolor="black",
                linewidth=0.3,
                facecolor=look[0],
                hatch=look[1],
            )
    _mark(axes, "x", "failed", [bar.ended_s if bar.failed else None for bar in bars])
    _mark(axes, ">", "we left", [bar.ended_s if bar.is_cut else None for bar in bars])
    each = "request" if timeline.every == 1 else f"request (each {timeline.every}th)"
    axes.set_ylabel(f"{each}, in order of sending")
    axes.legend(fontsize=8, loc="lower left", bbox_to_anchor=(0, 1), ncols=5, frameon=False)
    axes.set_ylim(len(bars) + 1, 0)


def _mark(axes: "Axes", mark: str, label: str, ends_s: list[float | None]) -> None:
    chosen = [(end_s, row) for row, end_s in enumerate(ends_s, 1) if end_s is not None]
    if chosen:
        times_s, rows = zip(*chosen, strict=True)
        axes.plot(times_s, rows, mark, color="black", label=label, linestyle="none")
