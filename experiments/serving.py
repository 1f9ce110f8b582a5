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
import sys
import time
from contextlib import AsyncExitStack

from rich.progress import Progress

from experiments.card import load_1min, make_card, open_console, print_card
from experiments.serving_client import Client
from experiments.serving_figures import Figures, to_figures
from experiments.serving_load import run_load
from experiments.serving_options import parse_options
from experiments.serving_report import Rounds, print_errors, print_report, to_json
from experiments.serving_workloads import WORKLOADS, Load, Workload
from shared.errors import ServiceError, SetupError

_WARMUP_TOKENS = 8
#: Servers let go of what clients left.
_SETTLE_S = 1.0


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


def main() -> None:
    options = parse_options(__doc__ or "")
    try:
        print(json.dumps(measure(options)))
    except ServiceError as error:
        sys.exit(f"error: {error.message}")


if __name__ == "__main__":
    main()
