"""Names beside the points of a plot, where they cover neither each other nor a point. All but ``place`` and
``overlap`` needs matplotlib."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GAP = 3.0
_FARTHEST = 4


@dataclass(frozen=True, slots=True)
class Box:
    """About its middle; in pixels, as everything here."""

    x: float
    y: float
    width: float
    height: float


def overlap(one: Box, other: Box) -> float:
    """The area that both cover."""
    wide = (one.width + other.width) / 2 - abs(one.x - other.x)
    high = (one.height + other.height) / 2 - abs(one.y - other.y)
    return max(0.0, wide) * max(0.0, high)


def place(
    points: Sequence[Box], sizes: Sequence[tuple[float, float]], others: Sequence[Box] = ()
) -> list[Box]:
    """A name of such a size for each point: the nearest place that covers nothing, else the one that covers
    least. ``others``: points without a name."""
    taken = [*points, *others]
    for point, (width, height) in zip(points, sizes, strict=True):
        places = _places(point, width, height)
        taken.append(min(places, key=lambda box: sum(overlap(box, other) for other in taken)))
    return taken[len(points) + len(others) :]


def _places(point: Box, width: float, height: float) -> Iterator[Box]:
    """Above, below and beside, then farther away."""
    above = (point.height + height) / 2 + _GAP
    beside = (point.width + width) / 2 + _GAP
    yield Box(point.x, point.y + above, width, height)
    yield Box(point.x, point.y - above, width, height)
    yield Box(point.x + beside, point.y, width, height)
    yield Box(point.x - beside, point.y, width, height)
    for steps in range(1, _FARTHEST):
        for sign in (1, -1):
            yield Box(point.x, point.y + sign * (above + steps * height), width, height)


def name_points(
    axes: "Axes",
    named: Sequence[tuple[str, float, float]],
    diameters_points: Sequence[float],
    others: Sequence[tuple[float, float]] = (),
) -> None:
    """``named`` are name, x and y. Call it last: what moves the axes afterwards moves points, not names."""
    figure = axes.get_figure(root=True)
    assert figure is not None, "axes are of a figure"
    texts = [
        axes.annotate(
            name,
            (x, y),
            xytext=(0, 0),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=7,
        )
        for name, x, y in named
    ]
    figure.draw_without_rendering()
    per_point = figure.dpi / 72
    at = _pixels(axes, [(x, y) for _, x, y in named])
    points = [
        Box(x, y, d * per_point, d * per_point)
        for (x, y), d in zip(at, diameters_points, strict=True)
    ]
    crosses = _pixels(axes, others)
    boxes = [text.get_window_extent() for text in texts]
    placed = place(
        points,
        [(box.width, box.height) for box in boxes],
        [Box(x, y, 6 * per_point, 6 * per_point) for x, y in crosses],
    )
    for text, point, box in zip(texts, points, placed, strict=True):
        text.set_position(((box.x - point.x) / per_point, (box.y - point.y) / per_point))


def _pixels(axes: "Axes", at: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in axes.transData.transform(list(at))] if at else []
