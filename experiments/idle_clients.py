"""What clients cost that wait: a thousand streams of queued jobs beside sixteen that run.

Hypothesis: next to nothing. The gateway's hub reads one short stream of news and only those jobs that
have some; a client that waits costs memory, a keep-alive comment every 15 s and its share of a reading
of all followed streams every 5 s. It has no connection to Redis of its own.

Regime: jobs without end-of-sequence fill all slots for the whole measurement; behind them wait as many
jobs (of low priority) as `--jobs` says, each followed by clients / jobs clients. Three windows of the
same length: before the idle clients, with them, and after they left. The running streams are read by
clients all the while, and get slower as their contexts grow: so CPU per token is told beside percent.

    python -m experiments.idle_clients --clients 1000
"""

import argparse
import asyncio
import json
import resource
import time
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from typing import Any

import psutil
from redis import Redis
from rich.console import Console
from rich.progress import Progress, track
from rich.table import Table

from cli.card import load_1min, make_card, open_console, print_card
from experiments.client import follow, open_stream, submit
from experiments.memory import process_mb
from experiments.prompts import make_prompt
from experiments.service import Service, running
from shared.connection import connect

#: Room for jobs that run through all windows; their KV cache is allocated for it.
CONTEXT_TOKENS = 4096
_START_TIMEOUT_S = 120.0
#: Files that the gateway and we open beside the connections.
_SPARE_FILES = 512


@dataclass(slots=True)
class Window:
    name: str
    gateway_cpu_percent: float = 0.0
    redis_cpu_percent: float = 0.0
    tokens_per_s: float = 0.0
    gateway_ms_per_token: float = 0.0
    gateway_rss_mb: float = 0.0
    redis_connections: int = 0


class Running:
    """The streams that run, and how many tokens came on them."""

    def __init__(self) -> None:
        self.num_tokens = 0
        self.num_started = 0
        self.num_ended = 0

    async def read(self, url: str, number: int) -> None:
        job = {"prompt": make_prompt(number), "max_tokens": CONTEXT_TOKENS, "ignore_eos": True}
        async for heard in follow(url, await submit(url, job | {"seed": number})):
            if heard.kind == "token":
                self.num_started += heard.data["index"] == 0
                self.num_tokens += heard.data["count"]
            self.num_ended += heard.kind == "end"


async def measure_window(
    name: str, service: Service, client: Redis, running_jobs: Running, length_s: float
) -> Window:
    pids = service.pids()
    gateway, redis = psutil.Process(pids["gateway"]), psutil.Process(pids["redis"])
    begin_s, num_tokens = time.monotonic(), running_jobs.num_tokens
    gateway_s, redis_s = _cpu_s(gateway), _cpu_s(redis)
    await asyncio.sleep(length_s)
    took_s, num_tokens = time.monotonic() - begin_s, running_jobs.num_tokens - num_tokens
    gateway_s, redis_s = _cpu_s(gateway) - gateway_s, _cpu_s(redis) - redis_s
    connections: Any = client.client_list()
    return Window(
        name=name,
        gateway_cpu_percent=round(100 * gateway_s / took_s, 2),
        redis_cpu_percent=round(100 * redis_s / took_s, 2),
        tokens_per_s=round(num_tokens / took_s, 1),
        gateway_ms_per_token=round(1000 * gateway_s / max(1, num_tokens), 3),
        gateway_rss_mb=round((process_mb(gateway.pid) or {})["rss"], 2),
        redis_connections=len(connections) - 1,  # without ours
    )


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


async def drive(service: Service, options: argparse.Namespace, console: Console) -> list[Window]:
    jobs, windows = Running(), []
    client = connect(service.redis_url)
    readers = [asyncio.create_task(jobs.read(service.url, i)) for i in range(options.active)]
    end_s = time.monotonic() + _START_TIMEOUT_S
    while jobs.num_started < options.active:
        if time.monotonic() > end_s:
            raise RuntimeError(f"only {jobs.num_started} of {options.active} jobs run")
        await asyncio.sleep(0.1)
    # The jobs that nobody follows yet are there from the first window on.
    waiting = []
    with Progress(console=console) as progress:
        for number in progress.track(range(options.jobs), description="queue jobs"):
            job = {"prompt": make_prompt(number), "max_tokens": 16, "priority": "low"}
            waiting.append(await submit(service.url, job))

    async def window(name: str) -> None:
        await asyncio.sleep(options.pause_s)
        one = await measure_window(name, service, client, jobs, options.window_s)
        windows.append(one)
        console.print(
            f"{name}: gateway {one.gateway_cpu_percent} % CPU, {one.gateway_rss_mb} MB; "
            f"{one.tokens_per_s} tokens/s"
        )

    await window("before")
    async with AsyncExitStack() as open_streams:
        for number in track(range(options.clients), "connect clients", console=console):
            job_id = waiting[number % len(waiting)]
            await open_streams.enter_async_context(open_stream(service.url, job_id))
        await window("with idle clients")
    await window("after they left")
    if jobs.num_ended:
        raise RuntimeError(f"{jobs.num_ended} running jobs ended before the windows did")
    for reader in readers:
        reader.cancel()
    await asyncio.gather(*readers, return_exceptions=True)
    client.close()
    return windows


def print_windows(console: Console, windows: list[Window]) -> None:
    rows = [asdict(window) for window in windows]
    table = Table(title="idle clients", title_justify="left")
    for head in rows[0]:
        table.add_column(head.replace("_", " "), justify="left" if head == "name" else "right")
    for row in rows:
        table.add_row(*map(str, row.values()))
    console.print(table)


def raise_file_limit(num_files: int) -> None:
    """For us and what we start. Raises ``SystemExit`` where the hard limit is too low."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < num_files:
        raise SystemExit(f"{num_files} files are needed, and the hard limit is {hard}")
    if soft != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, num_files), hard))


def measure(options: argparse.Namespace, console: Console) -> dict[str, object]:
    card = make_card(options.model)
    print_card(console, card)
    with running(
        workers=options.workers,
        model=options.model,
        context_tokens=CONTEXT_TOKENS,
        slots=-(-options.active // options.workers),
        drain_timeout_s=1,
        log_level="warning",
    ) as service:
        windows = asyncio.run(drive(service, options, console))
    print_windows(console, windows)
    before, beside, after = windows
    usual_percent = (before.gateway_cpu_percent + after.gateway_cpu_percent) / 2
    result = {
        "gateway_rss_kb_per_client": round(
            (beside.gateway_rss_mb - before.gateway_rss_mb) * 1000 / options.clients, 2
        ),
        "gateway_cpu_percent_without": round(usual_percent, 2),
        "gateway_cpu_percent_with": beside.gateway_cpu_percent,
        "redis_connections_without": before.redis_connections,
        "redis_connections_with": beside.redis_connections,
    }
    console.print(result)
    names = ("clients", "jobs", "active", "workers", "window_s")
    given = {name: getattr(options, name) for name in names}
    rows = [asdict(window) for window in windows]
    return card | given | result | {"windows": rows, "load_1min_after": load_1min()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--jobs", type=int, help="that wait; one per client unless given")
    parser.add_argument("--active", type=int, default=16, help="streams that run")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--window-s", type=float, default=30)
    parser.add_argument("--pause-s", type=float, default=3, help="before each window")
    parser.add_argument("--model", default="smollm2")
    options = parser.parse_args()
    options.jobs = options.jobs or options.clients
    raise_file_limit(options.clients + options.active + _SPARE_FILES)
    print(json.dumps(measure(options, open_console())))


if __name__ == "__main__":
    main()
