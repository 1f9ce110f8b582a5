"""The front of what nothing else beats in everything. Pure."""

from collections.abc import Sequence


def front(points: Sequence[Sequence[float]]) -> list[int]:
    """Numbers of those points that no other one equals in all and exceeds in some; more is better in each
    coordinate. Equal points are all of them in it."""

    def beats(one: Sequence[float], other: Sequence[float]) -> bool:
        return tuple(one) != tuple(other) and all(a >= b for a, b in zip(one, other, strict=True))

    return [
        number
        for number, point in enumerate(points)
        if not any(beats(other, point) for other in points)
    ]
