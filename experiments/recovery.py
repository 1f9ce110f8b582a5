"""What the death of a worker costs the streams that it was running.

Hypothesis: a client sees a pause and nothing else. The pause is the time until another attempt begins
(the death is noticed at once, but the survivor's slots may all be taken) and until prompt and known
tokens are fed again; no token is lost or repeated, and no job.

Regime: a closed loop of streaming clients, short jobs without end-of-sequence; SIGKILL to one worker
that holds jobs, at moments drawn from a seed, each time after all workers are ready again and the jobs
that it held have ended: else a job would meet several deaths, and after three it is run alone. A pause
is that of a stream which had tokens; with more clients than one worker has slots it contains queueing.
Whoever is killed again and again is restarted with back-off (up to 10 s), as in operation.

    python -m experiments.recovery --kills 20 --workers 2 --clients 16
"""

import argparse
import asyncio
import json
import os
import random
import signal
import time
from contextlib import suppress
from typing import Any

from rich.console import Console
from rich.progress import Progress

from cli.card import load_1min, make_card, open_console, print_card, print_table
from experiments.client import ask, follow, submit
from experiments.prompts import make_prompt
from experiments.recovery_report import Kill, Run, summarize
from experiments.resumes import Story
from experiments.service import Service, running
from shared.connection import connect
from shared.keys import job_key, taken_key

CONTEXT_TOKENS = 1024
_POLL_S = 0.1
_RESTART_TIMEOUT_S = 120.0
_SETTLE_TIMEOUT_S = 120.0


async def run_client(url: str, run: Run, number: int, options: argparse.Namespace) -> None:
    """One job after the other, each followed to its end."""
    while not run.is_over:
        number += options.clients
        job = {
            "prompt": make_prompt(number),
            "max_tokens": options.output_tokens,
            "ignore_eos": True,
            "seed": number,
        }
        job_id = await submit(url, job)
        story = run.stories[job_id] = Story()
        async for heard in follow(url, job_id):
            data = heard.data
            if heard.kind == "start":
                story.prompt_tokens = data["prompt_tokens"]
            elif heard.kind == "token":
                story.token(data["index"], data["count"], heard.came_s)
            else:
                story.status = data["status"]
                story.error_code = (data["error"] or {}).get("code", "")
                story.reported_tokens = data["usage"]["completion_tokens"]


async def ready_workers(url: str) -> list[dict[str, Any]]:
    workers = (await ask(url, "GET", "/workers")).body["workers"]
    return [worker for worker in workers if worker["state"] == "ready"]


async def kill_one(service: Service, rng: random.Random) -> Kill:
    """The chosen worker, or the next one that holds jobs."""
    client = connect(service.redis_url)
    try:
        while True:
            workers = await ready_workers(service.url)
            rng.shuffle(workers)
            for worker in workers:
                held: Any = client.smembers(taken_key(worker["incarnation"]))
                job_ids = [job_id.decode() for job_id in held]
                if not job_ids:
                    continue
                numbers: list[Any] = [client.hget(job_key(i), "attempt") for i in job_ids]
                os.kill(worker["pid"], signal.SIGKILL)
                attempts = dict(zip(job_ids, map(int, numbers), strict=True))
                return Kill(worker["name"], time.monotonic(), attempts)
            await asyncio.sleep(_POLL_S)
    finally:
        client.close()


async def restart_time_s(url: str, num_workers: int, killed_s: float, old: set[str]) -> float:
    """Until as many are ready as before, the killed one not among them."""
    while time.monotonic() < killed_s + _RESTART_TIMEOUT_S:
        names = {worker["incarnation"] for worker in await ready_workers(url)}
        if len(names) == num_workers and names != old:
            return time.monotonic() - killed_s
        await asyncio.sleep(_POLL_S)
    raise RuntimeError(f"a killed worker was not back within {_RESTART_TIMEOUT_S:g} s")


async def settle(run: Run, kill: Kill) -> None:
    """Until what the worker held has ended, or for a while: a job that is lost is counted later."""
    end_s = time.monotonic() + _SETTLE_TIMEOUT_S
    while time.monotonic() < end_s:
        if all(run.stories[job_id].status for job_id in kill.attempts if job_id in run.stories):
            return
        await asyncio.sleep(_POLL_S)


async def drive(service: Service, run: Run, options: argparse.Namespace, console: Console) -> None:
    rng, end_s = random.Random(options.seed), time.monotonic() + 60 * options.at_most_minutes
    clients = [
        asyncio.create_task(run_client(service.url, run, i, options))
        for i in range(options.clients)
    ]
    await asyncio.sleep(options.warmup_s)
    with Progress(console=console) as progress:
        task = progress.add_task("kills", total=options.kills)
        for number in range(1, options.kills + 1):
            if time.monotonic() > end_s:
                console.print("the time is over")
                break
            await asyncio.sleep(rng.uniform(options.min_pause_s, options.max_pause_s))
            old = {worker["incarnation"] for worker in await ready_workers(service.url)}
            kill = await kill_one(service, rng)
            run.kills.append(kill)
            took_s = await restart_time_s(service.url, options.workers, kill.at_s, old)
            run.restarts_s.append(took_s)
            await settle(run, kill)
            progress.console.print(
                f"kill {number}: {kill.worker} with {len(kill.attempts)} jobs; all workers ready "
                f"after {took_s:.1f} s, its jobs ended after {time.monotonic() - kill.at_s:.1f} s"
            )
            progress.advance(task)
    run.is_over = True
    # Every job that was accepted is followed to its end; one that never ends is a lost one.
    _, late = await asyncio.wait(clients, timeout=120)
    for client in late:
        client.cancel()
        with suppress(asyncio.CancelledError):
            await client
    for client in clients:
        if not client.cancelled() and (error := client.exception()):
            raise error


def measure(options: argparse.Namespace, console: Console) -> dict[str, object]:
    card = make_card(options.model)
    print_card(console, card)
    run = Run()
    with running(
        workers=options.workers,
        model=options.model,
        on_line=run.hear,
        context_tokens=CONTEXT_TOKENS,
        slots=options.slots,
    ) as service:
        console.print(f"{service.url}; moments of the kills are drawn from seed {options.seed}")
        asyncio.run(drive(service, run, options, console))
    result = summarize(run, options.output_tokens)
    print_table(console, "recovery", [(name, str(value)) for name, value in result.items()])
    names = ("workers", "clients", "slots", "output_tokens", "seed")
    given = {name: getattr(options, name) for name in names}
    return card | given | result | {"load_1min_after": load_1min()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--at-most-minutes", type=float, default=30, help="then fewer kills")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--slots", type=int, default=8, help="of each worker")
    parser.add_argument("--output-tokens", type=int, default=64)
    parser.add_argument("--warmup-s", type=float, default=10)
    parser.add_argument("--min-pause-s", type=float, default=1, help="to a kill")
    parser.add_argument("--max-pause-s", type=float, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--model", default="smollm2")
    options = parser.parse_args()
    print(json.dumps(measure(options, open_console())))


if __name__ == "__main__":
    main()
