"""How much of Redis' memory a finished job takes, and so how many a GiB holds until they expire.

Hypothesis: the events of its tokens dominate, and the prompt counts about once.

Regime: a Valkey of its own; jobs are submitted as the gateway does (shared/broker.py) and run by a
worker's own loop, link and RQ books over a played model, so that Redis gets exactly what a real worker
writes, one event per token. used_memory before and after; the short stream of news, which is as long
for any number of jobs, is filled before. Keys are measured one by one as well (MEMORY USAGE).

    python -m experiments.job_memory --jobs 300 --shapes 100/64 2000/256
"""

import argparse
import json
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

from redis import Redis
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from cli.card import load_1min, make_card, open_console, print_card
from experiments.own_valkey import own_valkey
from experiments.played_model import PlayedModel
from experiments.played_worker import MODEL, played_worker
from experiments.prompts import make_text
from shared.admission import Limits
from shared.broker import Broker
from shared.keys import NEWS, PREFIX
from shared.protocol import GenerateRequest
from shared.settings import load_settings
from worker.service import Drain

_GIB = 1 << 30


@contextmanager
def running_worker(client: Redis) -> Iterator[None]:
    """A played worker's loop in a thread."""
    drain = Drain(0)
    with played_worker(client, PlayedModel(slots=8, context_tokens=4096), drain) as service:
        thread = Thread(target=service.run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            drain.request()
            thread.join(timeout=30)


def run_jobs(client: Redis, chars: int, tokens: int, count: int, progress: Progress) -> list[str]:
    """Waits until RQ's books of them are closed too."""
    settings = load_settings()
    limits = Limits.from_settings(settings)
    broker = Broker(client, MODEL, settings.result_ttl_s, limits)
    job_ids = []
    for number in range(count):
        request = GenerateRequest(
            prompt=make_text(number, chars), max_tokens=tokens, ignore_eos=True
        )
        job_ids.append(broker.submit(request, request_id=f"job-{number}").job_id)
    task = progress.add_task(f"{chars} characters / {tokens} tokens", total=count)
    num_done = 0
    while num_done < count:
        with client.pipeline(transaction=False) as pipe:
            for job_id in job_ids:
                pipe.hget(f"rq:job:{job_id}", "status")
            num_done = sum(status == b"finished" for status in pipe.execute())
        progress.update(task, completed=num_done)
        time.sleep(0.2)
    return job_ids


def used_bytes(client: Redis) -> tuple[int, int]:
    """In all, and of the news."""
    facts: Any = client.info("memory")
    news: Any = client.memory_usage(NEWS, samples=0) if client.exists(NEWS) else 0
    return int(facts["used_memory"]), int(news)


def bytes_of_keys(client: Redis, job_ids: list[str]) -> dict[str, float]:
    """Mean of MEMORY USAGE by kind of key; what has no key of its own (lists of jobs) is not "
    "there."""
    kinds: dict[str, list[int]] = {}
    for job_id in job_ids:
        for key in client.scan_iter(match=f"*{job_id}*", count=100_000):
            kind = key.decode().replace(job_id, "<id>").removeprefix(PREFIX)
            kinds.setdefault(kind, []).append(int(client.memory_usage(key, samples=0) or 0))
    return {kind: round(statistics.fmean(sizes), 1) for kind, sizes in sorted(kinds.items())}


def measure_shape(shape: str, num_jobs: int, progress: Progress) -> dict[str, object]:
    chars, tokens = map(int, shape.split("/"))
    with own_valkey() as client:
        with running_worker(client):
            # The news are full, and so is all else that does not grow with the jobs.
            run_jobs(client, 10, 1000, 48, progress)
            before, news_before = used_bytes(client)
            job_ids = run_jobs(client, chars, tokens, num_jobs, progress)
            after, news_after = used_bytes(client)
        keys = bytes_of_keys(client, job_ids[:20])
    per_job = (after - before - (news_after - news_before)) / num_jobs
    return {
        "prompt_chars": chars,
        "tokens": tokens,
        "jobs": num_jobs,
        "bytes_per_job": round(per_job),
        "bytes_per_token": round(per_job / tokens, 1),
        "jobs_per_gib": int(_GIB / per_job),
        "keys_bytes": keys,
    }


def print_shapes(console: Console, shapes: list[dict[str, Any]]) -> None:
    table = Table(title="memory of a finished job", title_justify="left")
    heads = ("prompt_chars", "tokens", "bytes_per_job", "bytes_per_token", "jobs_per_gib")
    for head in (*heads, "keys"):
        table.add_column(head, justify="right" if head in heads else "left")
    for shape in shapes:
        keys = "\n".join(f"{name}: {size:.0f}" for name, size in shape["keys_bytes"].items())
        table.add_row(*(str(shape[head]) for head in heads), keys)
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument(
        "--shapes", nargs="+", default=["100/64", "2000/256"], metavar="CHARS/TOKENS"
    )
    options = parser.parse_args()
    console = open_console()
    card = make_card()
    print_card(console, card)
    with Progress(console=console) as progress:
        shapes = [measure_shape(shape, options.jobs, progress) for shape in options.shapes]
    print_shapes(console, shapes)
    print(json.dumps(card | {"shapes": shapes, "load_1min_after": load_1min()}))


if __name__ == "__main__":
    main()
