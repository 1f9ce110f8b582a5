"""The titles of plots: what is to be seen in them, in a sentence. Pure."""

from cli.bench.measured import Measured
from cli.bench.plan import Point
from cli.bench.timeline import Timeline


def of_sweep(measured: Measured) -> str:
    """Of the highest load, against the other server if there is one, else against the lowest load."""
    by_load = sorted(measured.points, key=lambda point: point.clients or point.rate_per_s or 0)
    low, high = by_load[0], by_load[-1]
    names = measured.names
    if len(names) > 1:
        parts = [_against(measured, high, name) for name in names[1:]]
        told = "; ".join(part for part in parts if part)
        return (
            f"{high.label}: {told}" if told else f"{names[0]} and {', '.join(names[1:])} under load"
        )
    more = _times(measured, names[0], low, high, "output_throughput")
    later = _times(measured, names[0], low, high, "median_ttft_ms")
    if more is None or later is None:
        return f"{names[0]} under load"
    return (
        f"From {low.label} to {high.label}: {more:.2g} times the tokens/s, "
        f"{later:.2g} times the wait for the first token"
    )


def _against(measured: Measured, point: Point, other: str) -> str:
    ours = measured.names[0]
    ratio = measured.ratios(point).get(f"{ours} / {other}", {}).get("output_throughput")
    if ratio is None:
        return ""
    return f"{ours} gives {ratio['median']:.2f} times the tokens/s of {other}"


def _times(measured: Measured, name: str, low: Point, high: Point, figure: str) -> float | None:
    first = measured.spreads(low, name).get(figure)
    last = measured.spreads(high, name).get(figure)
    if first is None or last is None or not first["median"]:
        return None
    return last["median"] / first["median"]


def of_timeline(name: str, point: Point, timeline: Timeline) -> str:
    peak = max(timeline.tokens_per_s, default=0.0)
    return (
        f"{name}, {point.label}: {100 * timeline.wait_share:.0f} % of requests' time is before the "
        f"first token; up to {peak:.0f} tokens/s"
    )
