"""How what was measured is told to people: a table for each load, and one of the loads of a sweep."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cli.bench.comparison import Spread
from cli.bench.measured import Measured
from cli.bench.plan import Point

_LATENCIES = ("ttft", "tpot", "itl", "e2el")
_STATISTICS = ("mean", "median", "p90", "p99")
#: In the words of `vllm bench serve`.
TITLES = {
    "completed": "Successful requests",
    "failed": "Failed requests",
    "cut_off": "Requests cut off",
    "duration": "Benchmark duration (s)",
    "total_input_tokens": "Total input tokens",
    "cached_tokens": "  of them cached",
    "total_output_tokens": "Total generated tokens",
    "request_throughput": "Request throughput (req/s)",
    "request_goodput": "Request goodput (req/s)",
    "output_throughput": "Output token throughput (tok/s)",
    "total_token_throughput": "Total token throughput (tok/s)",
    "max_concurrent_requests": "Peak concurrent requests",
    **{
        f"{s}_{n}_ms": f"{s.capitalize()} {n.upper()} (ms)" for n in _LATENCIES for s in _STATISTICS
    },
    "streams": "Streams beside",
    "stream_errors": "  of them failed",
    "median_before_ms": "Median ITL before (ms)",
    "p99_before_ms": "P99 ITL before (ms)",
    "max_before_ms": "Longest gap before (ms)",
    "median_during_ms": "Median ITL during (ms)",
    "p99_during_ms": "P99 ITL during (ms)",
    "max_during_ms": "Longest gap during (ms)",
    "mean_prompt_tokens": "Mean prompt tokens",
    "client_cpu_percent": "Client CPU (% of a core)",
}
_HIDDEN_AT_ZERO = ("cut_off", "cached_tokens", "stream_errors")
_IN_SWEEP = (
    "output_throughput",
    "request_goodput",
    "median_ttft_ms",
    "p99_ttft_ms",
    "median_itl_ms",
    "p99_itl_ms",
    "failed",
)


def print_report(console: Console, measured: Measured) -> None:
    """Medians of the rounds, least and most after them; ratios are of the same round."""
    for point in measured.points:
        console.print(_table_of(measured, point))
    if len(measured.points) > 1:
        console.print(_sweep_of(measured))


def _table_of(measured: Measured, point: Point) -> Table:
    several = measured.plan.rounds > 1
    title = f"{measured.plan.workload_name}, {point.label}" + (": median (least-most)" * several)
    table = Table(title=title, title_justify="left")
    table.add_column("figure")
    spreads = {name: measured.spreads(point, name) for name in measured.names}
    columns = spreads | measured.ratios(point)
    for column in columns:
        table.add_column(Text(column), justify="right")
    for figure, words in TITLES.items():
        found = [spread[figure] for spread in spreads.values() if figure in spread]
        is_shown = found and (figure not in _HIDDEN_AT_ZERO or any(s["max"] for s in found))
        if is_shown:
            table.add_row(words, *(cell(spread.get(figure)) for spread in columns.values()))
    return table


def _sweep_of(measured: Measured) -> Table:
    table = Table(title=f"{measured.plan.workload_name}: medians", title_justify="left")
    table.add_column("load")
    table.add_column("server")
    rows = [
        (point, name, measured.spreads(point, name))
        for point in measured.points
        for name in measured.names
    ]
    shown = [figure for figure in _IN_SWEEP if any(figure in spreads for _, _, spreads in rows)]
    for figure in shown:
        table.add_column(TITLES[figure], justify="right")
    for point, name, spreads in rows:
        table.add_row(point.label, Text(name), *(_median(spreads.get(figure)) for figure in shown))
    return table


def _median(spread: Spread | None) -> str:
    return "" if spread is None else _short(spread["median"])


def cell(spread: Spread | None) -> str:
    if spread is None:
        return ""
    median, least, most = (_short(spread[key]) for key in ("median", "min", "max"))
    return median if least == most else f"{median} ({least}-{most})"


def _short(value: float) -> str:
    """Four digits, or all of a whole number."""
    return f"{value:.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.4g}"
