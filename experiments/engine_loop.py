"""What the engine loop itself costs: microseconds of a step, and Redis commands and bytes of a token.

Hypothesis: a step's bookkeeping grows with its sequences and stays some per cent of a step of a real
model (tens of milliseconds); a step is one round trip, so that Redis' share of a token falls with the
number of sequences that share it.

Regime: a model that costs nothing (experiments/played_model.py) in place of llama.cpp, on one core.
  step    the bare engine, every sequence decoding, no stop strings: plan, commit, detokenizing, the
          rest of the step, and events put into words for Redis. The model's own time is taken off.
  redis   a worker's whole loop (engine, link, RQ's books) against a Valkey of its own, jobs submitted
          as the gateway does. Runs of two lengths: what Redis counts more of in the longer one is the
          tokens' cost, and the rest the jobs'. Commands count those within scripts. While slots are
          free, each step asks for jobs too. Heartbeats (one a second) and the gateway's reading are not
          in it.
Counts of sequences are measured in turn, several times: medians, and the spread from smallest to
largest. The last line of the output is JSON.

    python -m experiments.engine_loop --sequences 1 8 32 --repeats 5
"""

import argparse
import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from redis import Redis
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from cli.card import load_1min, make_card, open_console, print_card
from experiments.loop_redis import RedisCost, measure_redis
from experiments.loop_steps import StepCost, measure_steps
from experiments.own_valkey import own_valkey
from shared.cores import usable_cores
from worker.leases import pin

_MAX_SEQUENCES = 128
#: A job's context is 4096; and the shorter run has a quarter.
_MIN_TOKENS, _MAX_TOKENS = 16, 3_000


@dataclass(frozen=True, slots=True)
class Spread:
    """Of repeats."""

    median: float
    smallest: float
    largest: float

    def __str__(self) -> str:
        if self.smallest == self.largest:
            return _short(self.median)
        return f"{_short(self.median)} ({_short(self.smallest)}-{_short(self.largest)})"


def _short(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def spread_of(values: Sequence[float]) -> Spread:
    return Spread(*(round(f(values), 3) for f in (statistics.median, min, max)))


def summarize(repeats: Sequence[StepCost] | Sequence[RedisCost]) -> dict[str, Spread]:
    """By figure, of one number of sequences."""
    rows = [cost.figures() for cost in repeats]
    return {name: spread_of([row[name] for row in rows]) for name in rows[0]}


def measure(
    client: Redis, sequences: Sequence[int], repeats: int, tokens: int, tick: Callable[[], object]
) -> list[dict[str, Any]]:
    """A row for each number of sequences. A first round warms up and does not count."""
    steps: dict[int, list[StepCost]] = {count: [] for count in sequences}
    redis: dict[int, list[RedisCost]] = {count: [] for count in sequences}
    for number in range(repeats + 1):
        for count in sequences:
            step = measure_steps(count, tokens)
            cost = measure_redis(client, count, slots=max(sequences), tokens=tokens)
            if number:
                steps[count].append(step)
                redis[count].append(cost)
            tick()
    return [
        {
            "sequences": count,
            "step": summarize(steps[count]),
            "redis": summarize(redis[count]),
            "token_commands": dict(redis[count][-1].token.commands),
            "job_commands": dict(redis[count][-1].job.commands),
        }
        for count in sequences
    ]


#: In the order in which they are printed.
_STEP_WORDS = {
    "step_us": "a step, without the model",
    "plan_us": "  of it: plan *",
    "commit_us": "  of it: commit, without detokenizing *",
    "detokenize_us": "  of it: detokenizing *",
    "events_us": "events put into words for Redis",
    "per_token_us": "both, for a token",
}
_REDIS_WORDS = {
    "step_us": "microseconds of a step, Redis' answer included",
    "step_cpu_us": "  of it: the worker's CPU",
    "script_calls_per_token": "script calls for a token",
    "commands_per_token": "commands for a token, those of scripts included",
    "bytes_to_redis_per_token": "bytes to Redis for a token",
    "bytes_from_redis_per_token": "bytes from Redis for a token",
    "commands_per_job": "commands for a job, beside its tokens",
    "bytes_per_job": "bytes for a job, both ways, beside its tokens",
}


def print_part(
    console: Console, title: str, part: str, words: dict[str, str], rows: list[dict[str, Any]]
) -> None:
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for row in rows:
        plural = "s" if row["sequences"] > 1 else ""
        table.add_column(f"{row['sequences']} sequence{plural}", justify="right")
    for name, text in words.items():
        table.add_row(text, *(str(row[part][name]) for row in rows))
    console.print(table)


def to_json(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(inner) for key, inner in value.items()}
        return asdict(value) if isinstance(value, Spread) else value

    return [plain(row) for row in rows]


def main() -> None:
    options = _parse()
    console = open_console()
    card = make_card()
    print_card(console, card)
    with own_valkey() as client, Progress(console=console) as progress:
        cores = usable_cores().cores
        pin(cores[:1])  # Valkey runs already, and keeps all cores
        task = progress.add_task("rounds", total=(options.repeats + 1) * len(options.sequences))
        rows = measure(
            client,
            options.sequences,
            options.repeats,
            options.tokens,
            lambda: progress.advance(task),
        )
    how = "median (smallest-largest)"
    print_part(console, f"engine, microseconds, {how}", "step", _STEP_WORDS, rows)
    console.print("* of runs in which each part is timed, which makes them longer")
    print_part(console, f"worker and Redis, {how}", "redis", _REDIS_WORDS, rows)
    given = {"repeats": options.repeats, "tokens": options.tokens, "slots": max(options.sequences)}
    print(json.dumps(card | given | {"rows": to_json(rows), "load_1min_after": load_1min()}))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--sequences",
        type=int,
        nargs="+",
        default=[1, 8, 32],
        help=f"that run at once, 1 to {_MAX_SEQUENCES}; the worker has slots for the most of them",
    )
    parser.add_argument("--repeats", type=int, default=5, help="of each, 1 or more")
    parser.add_argument(
        "--tokens",
        type=int,
        default=256,
        help=f"of a job, {_MIN_TOKENS} to {_MAX_TOKENS} (default: 256)",
    )
    options = parser.parse_args()
    for count in options.sequences:
        if not 1 <= count <= _MAX_SEQUENCES:
            parser.error(f"--sequences: must be 1 to {_MAX_SEQUENCES} (got {count})")
    if options.repeats < 1:
        parser.error(f"--repeats: must be 1 or more (got {options.repeats})")
    if not _MIN_TOKENS <= options.tokens <= _MAX_TOKENS:
        parser.error(f"--tokens: must be {_MIN_TOKENS} to {_MAX_TOKENS} (got {options.tokens})")
    options.sequences = sorted(set(options.sequences))
    return options


if __name__ == "__main__":
    main()
