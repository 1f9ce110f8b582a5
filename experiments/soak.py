"""Whether anything grows: memory of gateway, workers and Redis under a mixed load.

Hypothesis: after a warm-up no slope differs from zero by more than two of its errors, and every job that
was accepted has ended. What still warms up grows more slowly in the second half; a leak does not.

Regime: a closed loop of clients of all kinds (experiments/soak_load.py), results kept for 20 s so that
Redis reaches a steady state. One sample a second: of processes anonymous memory, RSS and PSS (which moves
with other processes that map the same model), of Redis used_memory. The gateway drops what expired from
its lists once a minute, so Redis' memory is a saw-tooth: the errors of the slopes are widened for that
(experiments/figures.py). A run of minutes sees a leak of some tens of MB per hour and no smaller one.

    python -m experiments.soak --minutes 5
"""

import argparse
import asyncio
import json
import time
from collections import defaultdict

from redis import Redis
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from cli.card import load_1min, make_card, open_console, print_card
from experiments.client import ask
from experiments.figures import Line, fit_line
from experiments.memory import process_mb, redis_used_mb
from experiments.service import Service, running
from experiments.soak_load import Load, Tally
from shared.connection import connect

CONTEXT_TOKENS = 1024
_SETTLE_TIMEOUT_S = 120.0

#: Name of a memory -> (s since the warm-up's end, MB).
Samples = dict[str, list[tuple[float, float]]]


def take_sample(samples: Samples, now_s: float, pids: dict[str, int], client: Redis) -> None:
    for name, pid in pids.items():
        for measure, mb in (process_mb(pid) or {}).items():
            samples[f"{name} {measure}"].append((now_s, mb))
    samples["redis used_memory"].append((now_s, redis_used_mb(client)))


async def drive(
    service: Service, options: argparse.Namespace, console: Console
) -> tuple[Samples, Tally, dict[str, int]]:
    tally, samples = Tally(), defaultdict[str, list[tuple[float, float]]](list)
    loads = [Load(service.url, options.seed + i, tally) for i in range(options.clients)]
    clients = [asyncio.create_task(load.run()) for load in loads]
    client, pids = connect(service.redis_url), service.pids()
    duration_s = options.minutes * 60
    begin_s = time.monotonic() + options.warmup_s
    with Progress(console=console) as progress:
        task = progress.add_task("soak", total=options.warmup_s + duration_s)
        while (now_s := time.monotonic() - begin_s) < duration_s:
            if now_s >= 0:
                take_sample(samples, now_s, pids, client)
            progress.update(task, completed=options.warmup_s + now_s)
            if int(now_s) % 30 == 0:
                progress.console.print(
                    f"{now_s:5.0f} s: {len(tally.accepted)} jobs accepted, {len(tally.ended)} "
                    f"ended, {len(tally.surprises)} surprises"
                )
            await asyncio.sleep(1 - time.monotonic() % 1)
    client.close()
    for load in loads:
        load.is_over = True
    _, late = await asyncio.wait(clients, timeout=_SETTLE_TIMEOUT_S)
    tally.surprises += [f"a client did not come to its end: {one}" for one in late]
    for one in clients:
        one.cancel()
    for error in await asyncio.gather(*clients, return_exceptions=True):
        if isinstance(error, Exception):
            tally.surprises.append(repr(error))
    totals = (await ask(service.url, "GET", "/metrics")).body["jobs"]
    if (now := service.pids()) != pids:
        tally.surprises.append(f"processes were replaced: {pids} -> {now}")
    return samples, tally, totals


def to_mb_per_hour(points: list[tuple[float, float]]) -> Line:
    return fit_line([s / 3600 for s, _ in points], [mb for _, mb in points])


def print_slopes(console: Console, samples: Samples) -> dict[str, dict[str, float]]:
    table = Table(title="memory", title_justify="left")
    for head in (
        "what",
        "first MB",
        "last MB",
        "slope MB/h",
        "± error",
        "2nd half MB/h",
        "± error",
    ):
        table.add_column(head, justify="right" if head != "what" else "left")
    result = {}
    for name, points in sorted(samples.items()):
        line, late = to_mb_per_hour(points), to_mb_per_hour(points[len(points) // 2 :])
        first, last = points[0][1], points[-1][1]
        figures = (first, last, line.slope, line.error, late.slope, late.error)
        table.add_row(name, *(f"{value:.2f}" for value in figures))
        names = ["first_mb", "last_mb", "mb_per_hour", "error", "late_mb_per_hour", "late_error"]
        result[name] = dict(zip(names, (round(value, 3) for value in figures), strict=True))
    console.print(table)
    return result


def measure(options: argparse.Namespace, console: Console) -> dict[str, object]:
    card = make_card(options.model)
    print_card(console, card)
    with running(
        workers=options.workers,
        model=options.model,
        context_tokens=CONTEXT_TOKENS,
        result_ttl_s=options.result_ttl_s,
        log_level="warning",
    ) as service:
        samples, tally, totals = asyncio.run(drive(service, options, console))
    slopes = print_slopes(console, samples)
    statuses = list(tally.ended.values())
    counted = totals["completed"] + totals["failed"] + totals["cancelled"]
    for surprise in tally.surprises[:20]:
        console.print(f"surprise: {surprise}")
    result = {
        "jobs_accepted": len(tally.accepted),
        "jobs_ended": len(tally.ended),
        "every_accepted_job_ended": tally.accepted == set(tally.ended),
        "statuses": {status: statuses.count(status) for status in sorted(set(statuses))},
        "metrics_count_each_once": counted == len(tally.accepted),
        "bad_requests_refused": tally.num_refused,
        "tokens_read": tally.num_tokens,
        "clients_by_kind": dict(tally.kinds),
        "surprises": len(tally.surprises),
    }
    console.print(result)
    given = {n: getattr(options, n) for n in ("minutes", "warmup_s", "clients", "result_ttl_s")}
    return card | given | result | {"memory": slopes, "load_1min_after": load_1min()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=5, help="beside the warm-up")
    parser.add_argument("--warmup-s", type=float, default=60)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--clients", type=int, default=12)
    parser.add_argument("--result-ttl-s", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--model", default="smollm2")
    options = parser.parse_args()
    print(json.dumps(measure(options, open_console())))


if __name__ == "__main__":
    main()
