"""What clients of a server of OpenAI's API get: tokens per second, times to the first token and between
tokens, and how much of the prompts came from a cache. Servers are measured in turn, round by round, on
the same prompts, so that the ratio of two of them says more than the figures of either.

Nothing is started here: give this service, llama-server, or both, each idle while it is not its turn.
The prompts of a round are new to the servers (they are drawn from --seed, which is drawn unless given:
servers that have seen a seed have its prompts in their caches). Gaps are those between two pieces of
text of a stream; tokens_per_piece says how many tokens a piece is. `long` holds 7 streams, and tells
their gaps before and while a prompt of 2,000 tokens is computed (16 tokens are asked of it). The last
line of the output is JSON.

    python -m experiments.serving --url ours=http://127.0.0.1:8000 --url peer=http://127.0.0.1:8081
"""

import argparse
import asyncio
import json
import os
import random
import sys
import time
from contextlib import AsyncExitStack

from rich.progress import Progress

from experiments.card import load_1min, make_card, open_console, print_card
from experiments.serving_client import Client, Server
from experiments.serving_figures import Figures, to_figures
from experiments.serving_load import run_load
from experiments.serving_report import Rounds, print_errors, print_report, to_json
from experiments.serving_workloads import WORKLOADS, Load, Workload
from shared.errors import ServiceError, SetupError

_WARMUP_TOKENS = 8
#: Servers let go of what clients left.
_SETTLE_S = 1.0


def parse_server(text: str) -> Server:
    name, _, url = text.partition("=")
    url = url.rstrip("/").removesuffix("/v1")
    if not name or not url.startswith(("http://", "https://")):
        raise argparse.ArgumentTypeError(f"must be NAME=http://HOST:PORT (got {text!r})")
    return Server(name, url)


def at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a number from 1 on (got {text!r})")
    return int(text)


def make_load(workload: Workload, number: int, options: argparse.Namespace) -> Load:
    clients = options.clients or workload.clients
    return workload.load(options.seed, number, clients, options.requests or workload.requests)


async def warm_up(client: Client, options: argparse.Namespace) -> None:
    """With prompts that no round has. Raises ``SetupError`` of a server that answers nothing."""
    load = make_load(WORKLOADS["random"], 0, options)
    seen = await run_load(client, load, _WARMUP_TOKENS, 0)
    if all(answer.error for answer in seen.answers):
        what = f"no request was answered; the first: {seen.answers[0].error}"
        raise SetupError(f"--url {client.server.name}: {what}", field="url")


async def drive(options: argparse.Namespace, progress: Progress) -> Rounds:
    rounds: Rounds = {name: {s.name: [] for s in options.url} for name in options.workload}
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(Client(server, options.model, options.api_key))
            for server in options.url
        ]
        for client in clients:
            names = ", ".join(await client.list_models())
            progress.console.print(f"{client.server.name}: {client.server.url}, {names}")
        for client in clients:
            await warm_up(client, options)
        total = options.rounds * len(options.workload) * len(clients)
        task = progress.add_task("measure", total=total)
        for number in range(1, options.rounds + 1):
            first = (number - 1) % len(clients)  # nobody always comes after the same one
            for name in options.workload:
                load = make_load(WORKLOADS[name], number, options)
                for client in clients[first:] + clients[:first]:
                    what = f"round {number}, {name}, {client.server.name}"
                    progress.update(task, description=what)
                    figures = await measure_once(client, load, what, options, progress)
                    rounds[name][client.server.name].append(figures)
                    progress.advance(task)
    return rounds


async def measure_once(
    client: Client, load: Load, what: str, options: argparse.Namespace, progress: Progress
) -> Figures:
    await asyncio.sleep(_SETTLE_S)
    cpu_s, begin_s = time.process_time(), time.monotonic()
    seen = await run_load(client, load, options.output_tokens, options.quiet_s)
    took_s = time.monotonic() - begin_s
    print_errors(progress.console, what, seen)
    return to_figures(seen) | {
        "took_s": round(took_s, 1),
        # Of a core that the server could have used.
        "client_cpu_percent": round(100 * (time.process_time() - cpu_s) / took_s, 1),
    }


def measure(options: argparse.Namespace) -> dict[str, object]:
    console = open_console()
    card = make_card()
    print_card(console, card)
    with Progress(console=console) as progress:
        rounds = asyncio.run(drive(options, progress))
    print_report(console, rounds)
    names = ("clients", "requests", "output_tokens", "rounds", "seed", "quiet_s")
    given = {name: getattr(options, name) for name in names}
    servers = {server.name: server.url for server in options.url}
    rest = {"load_1min_after": load_1min()}
    return card | given | {"servers": servers, "workloads": to_json(rounds)} | rest


def parse_options(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m experiments.serving",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    defaults = {w.name: (w.clients, w.requests) for w in WORKLOADS.values()}
    parser.add_argument("--url", type=parse_server, action="append", required=True)
    parser.add_argument(
        "--workload",
        action="append",
        choices=list(WORKLOADS),
        help="may be repeated; all unless given:\n"
        + "\n".join(f"{w.name}: {w.title}" for w in WORKLOADS.values()),
    )
    parser.add_argument("--clients", type=at_least_one, help="of each workload (streams of `long`)")
    parser.add_argument(
        "--requests",
        type=at_least_one,
        help="per client: prompts, turns of a chat, or prompts that arrive;\n"
        f"(clients, requests) unless given: {defaults}",
    )
    parser.add_argument("--output-tokens", type=at_least_one, default=64, help="not of `long`")
    parser.add_argument("--rounds", type=at_least_one, default=3)
    parser.add_argument("--quiet-s", type=float, default=5, help="of `long`, before the prompt")
    parser.add_argument("--seed", type=int, help="drawn unless given")
    parser.add_argument("--model", default="default", help="as the servers call it")
    parser.add_argument("--api-key", default=os.environ.get("MINI_VLLM_API_KEY"))
    options = parser.parse_args(arguments)
    for what in ("name", "url"):
        if len({getattr(server, what) for server in options.url}) < len(options.url):
            parser.error(f"--url: two servers have one {what}; a second one would be warm")
    if not 0 <= options.quiet_s <= 30:
        parser.error(f"--quiet-s: must be 0 to 30 (got {options.quiet_s})")
    options.workload = list(dict.fromkeys(options.workload or WORKLOADS))
    if options.seed is None:
        options.seed = random.randrange(2**32)
    return options


def main() -> None:
    options = parse_options()
    try:
        print(json.dumps(measure(options)))
    except ServiceError as error:
        sys.exit(f"error: {error.message}")


if __name__ == "__main__":
    main()
