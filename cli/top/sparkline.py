"""A curve as one line of characters. Pure."""

from collections.abc import Callable, Iterable, Sequence

STEPS = "▁▂▃▄▅▆▇█"
ASCII_STEPS = "_.-=+*#@"

#: A moment, and a value that may not be known.
Reading = tuple[float, float | None]


def over_time(
    readings: Iterable[Reading],
    *,
    now_s: float,
    span_s: float,
    num_cells: int,
    combine: Callable[[Sequence[float]], float],
) -> list[float | None]:
    """One value for each cell of the span that ends now; ``None`` where nothing is known."""
    cells: list[list[float]] = [[] for _ in range(num_cells)]
    for at, value in readings:
        index = num_cells - 1 - int(max(0.0, now_s - at) / span_s * num_cells)
        if value is not None and index >= 0:
            cells[index].append(value)
    return [combine(cell) if cell else None for cell in cells]


def spark(values: Sequence[float | None], steps: str = STEPS) -> str:
    """From zero, so that a steady curve is not drawn as a wild one; a blank where nothing is known."""
    top = max((value for value in values if value is not None), default=0.0)
    return "".join(" " if value is None else _step(value, top, steps) for value in values)


def _step(value: float, top: float, steps: str) -> str:
    if top <= 0:
        return steps[0]
    return steps[min(len(steps) - 1, int(max(0.0, value) / top * len(steps)))]
