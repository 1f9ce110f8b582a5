"""How the rounds of `experiments.serving` are told: tables for people, and what becomes JSON."""

from collections import Counter

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from experiments.serving_answers import Seen
from experiments.serving_figures import Figures, over_rounds, ratios

#: By workload and server.
Rounds = dict[str, dict[str, list[Figures]]]

_MAX_MESSAGES = 3


def print_errors(console: Console, what: str, seen: Seen) -> None:
    counts = Counter(a.error for a in [*seen.answers, *seen.streams] if a.error)
    for message, count in counts.most_common(_MAX_MESSAGES):
        console.print(f"{what}: {count} times: {escape(message)}")
    if len(counts) > _MAX_MESSAGES:
        console.print(f"{what}: and {len(counts) - _MAX_MESSAGES} other errors")


def print_report(console: Console, rounds: Rounds) -> None:
    """Medians of the rounds, least and most after them, and ratios to the first server."""
    for name, servers in rounds.items():
        base = next(iter(servers))
        table = Table(title=f"{name}: median (least-most)", title_justify="left")
        table.add_column("figure")
        spreads = {server: over_rounds(figures) for server, figures in servers.items()}
        columns = dict(spreads)
        for server in list(servers)[1:]:
            columns[f"{server} / {base}"] = ratios(servers[server], servers[base])
        for column in columns:
            table.add_column(column, justify="right")
        for figure in dict.fromkeys(f for spread in spreads.values() for f in spread):
            table.add_row(figure, *(_cell(spread.get(figure)) for spread in columns.values()))
        console.print(table)


def _cell(spread: dict[str, float] | None) -> str:
    if spread is None:
        return ""
    median, least, most = (f"{spread[key]:g}" for key in ("median", "min", "max"))
    return median if least == most else f"{median} ({least}-{most})"


def to_json(rounds: Rounds) -> dict[str, object]:
    return {
        name: {
            server: {
                "figures": over_rounds(figures),
                "rounds": figures,
                "ratios_to_first": ratios(figures, next(iter(servers.values()))),
            }
            for server, figures in servers.items()
        }
        for name, servers in rounds.items()
    }
