"""Latency and throughput against load: what a server gives up for what."""

from typing import TYPE_CHECKING

from cli.bench.canvas import DASHES, MARKERS, SHADES, new_figure
from cli.bench.measured import Measured
from cli.bench.takeaways import of_sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Panel: its axis, and the figures in it with their names.
_PANELS = (
    ("output tokens per second", (("output_throughput", ""),)),
    ("time to first token (ms)", (("median_ttft_ms", "median"), ("p99_ttft_ms", "p99"))),
    ("gap between tokens (ms)", (("median_itl_ms", "median"), ("p99_itl_ms", "p99"))),
)


def draw_sweep(measured: Measured) -> "Figure":
    """Lines are medians of the rounds, whiskers the least and the most; hollow marks are p99."""
    figure = new_figure(11, 4.2)
    is_closed = measured.points[0].clients is not None
    title = of_sweep(measured)
    if measured.plan.rounds > 1:
        title += f"\nmedian of {measured.plan.rounds} rounds; whiskers: least and most"
    figure.suptitle(title, fontsize=11, wrap=True)
    for axes, (unit, lines) in zip(figure.subplots(1, len(_PANELS)), _PANELS, strict=True):
        for number, name in enumerate(measured.names):
            for key, part in lines:
                label = part if len(measured.names) == 1 else f"{name} {part}".strip()
                _draw_line(axes, measured, number, key, label, is_tail=part == "p99")
        axes.set_xlabel("clients at once" if is_closed else "requests per second")
        axes.set_ylabel(unit)
        axes.set_ylim(bottom=0)
        axes.grid(color="#dddddd", linewidth=0.6)
        axes.set_axisbelow(True)
        _mark_loads(axes, measured)
        if axes.get_legend_handles_labels()[1]:
            axes.legend(fontsize=8, frameon=False)
    return figure


def _draw_line(
    axes: "Axes", measured: Measured, number: int, key: str, label: str, *, is_tail: bool
) -> None:
    loads, middles, below, above = [], [], [], []
    for point in measured.points:
        spread = measured.spreads(point, measured.names[number]).get(key)
        if spread is not None:
            loads.append(float(point.clients or point.rate_per_s or 0))
            middles.append(spread["median"])
            below.append(spread["median"] - spread["min"])
            above.append(spread["max"] - spread["median"])
    if not loads:
        return
    axes.errorbar(
        loads,
        middles,
        yerr=[below, above],
        label=label or None,
        color=SHADES[number % len(SHADES)],
        linestyle=DASHES[number % len(DASHES)],
        linewidth=1.0 if is_tail else 1.8,
        marker=MARKERS[number % len(MARKERS)],
        markerfacecolor="white" if is_tail else None,
        capsize=3,
    )


def _mark_loads(axes: "Axes", measured: Measured) -> None:
    """At the loads that were measured, on a scale of doublings where they are far apart."""
    loads = [float(point.clients or point.rate_per_s or 0) for point in measured.points]
    if min(loads) > 0 and max(loads) / min(loads) >= 8:
        axes.set_xscale("log", base=2)
    axes.set_xticks(loads, [f"{load:g}" for load in loads])
    axes.minorticks_off()
