"""What was measured so far: whole at any moment, so that Ctrl-C loses nothing. Pure."""

from dataclasses import dataclass, field

from cli.bench.answers import Seen
from cli.bench.comparison import Spread, over_rounds, ratios
from cli.bench.figures import Figures, to_figures
from cli.bench.plan import Plan, Point
from cli.bench.words import WORD_IS_TOKEN, Rate


@dataclass(frozen=True, slots=True)
class Run:
    """One load against one server, once. ``errors`` are counts by kind, with one message of each."""

    round_number: int
    figures: Figures
    errors: dict[str, tuple[int, str]]
    is_interrupted: bool = False


@dataclass(slots=True)
class Measured:
    plan: Plan
    rate: Rate = WORD_IS_TOKEN  #: by which prompts were made: that of the first server
    models: dict[str, str] = field(default_factory=dict)
    rates: dict[str, Rate | None] = field(default_factory=dict)
    without_ignore_eos: list[str] = field(default_factory=list)
    runs: dict[tuple[Point, str], list[Run]] = field(default_factory=dict)
    last: dict[str, tuple[Point, Seen]] = field(default_factory=dict)  #: by server, to be drawn
    is_interrupted: bool = False
    problem: str = ""  #: why it ended before its end

    @property
    def names(self) -> list[str]:
        return [server.name for server in self.plan.servers]

    @property
    def points(self) -> list[Point]:
        """Those of which there is anything."""
        return [p for p in self.plan.points if any(self.runs.get((p, n)) for n in self.names)]

    def add(self, point: Point, server: str, round_number: int, seen: Seen) -> None:
        if not seen.answers and not seen.streams:
            return
        figures = to_figures(seen, self.plan.objective)
        run = Run(round_number, figures, _errors_of(seen), seen.is_interrupted)
        self.runs.setdefault((point, server), []).append(run)
        if not seen.is_interrupted or server not in self.last:
            self.last[server] = (point, seen)

    def rounds(self, point: Point, server: str) -> list[Figures]:
        """A run that was interrupted counts where there is no other."""
        runs = self.runs.get((point, server), [])
        return [r.figures for r in runs if not r.is_interrupted] or [r.figures for r in runs]

    def spreads(self, point: Point, server: str) -> dict[str, Spread]:
        return over_rounds(self.rounds(point, server))

    def ratios(self, point: Point) -> dict[str, dict[str, Spread]]:
        """The first server to each other one."""
        ours = self.rounds(point, self.names[0])
        found = {
            f"{self.names[0]} / {name}": ratios(ours, self.rounds(point, name))
            for name in self.names[1:]
        }
        return {name: columns for name, columns in found.items() if columns}

    def total(self, server: str, figure: str) -> float:
        runs = [run for (_, name), runs in self.runs.items() if name == server for run in runs]
        return sum(run.figures.get(figure) or 0 for run in runs)

    def errors(self, server: str) -> dict[str, tuple[int, str]]:
        """Of all runs of a server; the most frequent first."""
        found: dict[str, tuple[int, str]] = {}
        for (_, name), runs in self.runs.items():
            for run in runs if name == server else ():
                for kind, (count, message) in run.errors.items():
                    before, first = found.get(kind, (0, message))
                    found[kind] = (before + count, first)
        return dict(sorted(found.items(), key=lambda pair: -pair[1][0]))


def _errors_of(seen: Seen) -> dict[str, tuple[int, str]]:
    found: dict[str, tuple[int, str]] = {}
    for answer in (*seen.answers, *seen.streams):
        if answer.error:
            count, first = found.get(answer.error_kind, (0, answer.error))
            found[answer.error_kind] = (count + 1, first)
    return found
