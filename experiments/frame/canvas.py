"""How the plots of experiments look: readable in grey, the takeaway above, another run beside."""

import textwrap
from typing import TYPE_CHECKING, Any

from cli.bench.canvas import DASHES, MARKERS, SHADES, new_figure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "DASHES",
    "MARKERS",
    "SHADES",
    "draw_line",
    "even_lines",
    "label",
    "mark",
    "panels",
    "scale_y",
    "whiskers",
]

_TITLE_CHARS = 120
_NO_BREAK = "\N{NO-BREAK SPACE}"
_OTHER = "#999999"


def panels(
    count: int, takeaway: str, *, others: "Sequence[str]" = (), shown_as: str = "light grey"
) -> "tuple[Figure, list[Axes]]":
    """Side by side. ``others``: labels of runs that are drawn beside; ``shown_as`` tells them apart."""
    figure = new_figure(5.2 * count + 0.4, 4.6)
    title = even_lines(takeaway, _TITLE_CHARS if count > 1 else _TITLE_CHARS // 2 + 10)
    if others:
        title += f"\n{shown_as}: " + "; ".join(others)
    figure.suptitle(title, fontsize=11)
    axes = list(figure.subplots(1, count, squeeze=False)[0])
    for one in axes:
        one.grid(color="#dddddd", linewidth=0.6)
        one.set_axisbelow(True)
    return figure, axes


def even_lines(text: str, most_chars: int) -> str:
    """As few lines as there must be, about as long as each other: no word stands alone, nor a "%"."""
    text = text.replace(" %", f"{_NO_BREAK}%")
    lines = textwrap.wrap(text, most_chars)
    width = max(1, len(text) // max(1, len(lines)))
    while width < most_chars and len(textwrap.wrap(text, width)) > len(lines):
        width += 1
    return textwrap.fill(text, width).replace(_NO_BREAK, " ")


def label(axes: "Axes", x: str, y: str, *, title: str = "", has_legend: bool = True) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if title:
        axes.set_title(title, fontsize=10)
    if has_legend and axes.get_legend_handles_labels()[1]:
        axes.legend(fontsize=8, frameon=False)


def draw_line(
    axes: "Axes",
    xs: "Sequence[float]",
    ys: "Sequence[float]",
    number: int,
    name: str,
    *,
    is_other: bool = False,
    has_marks: bool = True,
    errors: "tuple[list[float], list[float]] | None" = None,
) -> None:
    """``number`` chooses shade, dash and mark. Another run has no name in the legend."""
    axes.errorbar(
        xs,
        ys,
        yerr=errors,
        label=None if is_other else name,
        color=_OTHER if is_other else SHADES[number % len(SHADES)],
        linestyle=DASHES[number % len(DASHES)],
        linewidth=1.0 if is_other else 1.8,
        marker=MARKERS[number % len(MARKERS)] if has_marks else None,
        markersize=4 if is_other else 6,
        markerfacecolor="white" if is_other else None,
        capsize=3,
        zorder=1 if is_other else 2,
    )


def whiskers(spreads: "Sequence[Mapping[str, Any]]") -> tuple[list[float], list[float]]:
    """From the least to the most of the rounds."""
    return (
        [spread["median"] - spread["least"] for spread in spreads],
        [spread["most"] - spread["median"] for spread in spreads],
    )


def mark(axes: "Axes", xs: "Sequence[float]") -> None:
    """At what was measured, on a scale of doublings where it is far apart."""
    points = sorted(set(xs))
    if points[0] > 0 and points[-1] / points[0] >= 8:
        axes.set_xscale("log", base=2)
    axes.set_xticks(points, [f"{x:g}" for x in points])
    axes.minorticks_off()


def scale_y(axes: "Axes") -> None:
    """By factors, with numbers that can be read."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
