"""Numbers as people read them. Pure."""

from collections.abc import Mapping


def figure(value: float, digits: int = 4) -> str:
    """So many digits that count, and never an exponent for what is large."""
    return f"{value:.0f}" if abs(value) >= 10**digits - 0.5 else f"{value:.{digits}g}"


def with_range(spread: Mapping[str, float], digits: int = 3) -> str:
    """The median of the rounds, and the least and the most of them if there were several."""
    middle, least, most = (figure(spread[name], digits) for name in ("median", "least", "most"))
    return middle if spread["rounds"] < 2 else f"{middle} ({least}-{most})"


def seconds(value_s: float) -> str:
    return f"{figure(value_s * 1000, 3)} ms" if value_s < 1 else f"{figure(value_s, 3)} s"


def times(ratio: float) -> str:
    return f"{ratio:.1f}" if ratio < 10 else f"{ratio:.0f}"


def percent(share: float) -> str:
    return f"{share * 100:.0f} %"
