"""Where one curve falls below another, between points that were measured. Pure."""

from collections.abc import Sequence


def crossing(xs: Sequence[float], falling: Sequence[float], other: Sequence[float]) -> float | None:
    """The first x from which on ``falling`` is no more than ``other``, taken as straight between points.
    The first point if it is so there already; None if it never is, or not to the end."""
    gaps = [mine - theirs for mine, theirs in zip(falling, other, strict=True)]
    if not gaps or gaps[-1] > 0:
        return None
    last = max((number for number, gap in enumerate(gaps) if gap > 0), default=-1)
    if last < 0:
        return float(xs[0])
    before, after = gaps[last], gaps[last + 1]
    share = before / (before - after)
    return float(xs[last] + share * (xs[last + 1] - xs[last]))
