"""Measures servers in turn, round by round, on the same requests, so that the ratio of two of them says
more than the figures of either. Nothing is started here; each is idle while it is not its turn."""

import asyncio
import time
from contextlib import AsyncExitStack, suppress

from cli.bench.answers import Seen
from cli.bench.calibration import calibrate
from cli.bench.client import Client
from cli.bench.load import run_load
from cli.bench.measured import Measured
from cli.bench.plan import Plan, Point
from cli.bench.watch import Watch
from cli.bench.words import WORD_IS_TOKEN
from shared.errors import SetupError

#: Servers let go of what clients left.
_SETTLE_S = 1.0


def measure(plan: Plan) -> Measured:
    """Ctrl-C ends it, with what there is, and so does a load that cannot go on. Raises ``SetupError`` if a
    server cannot be measured at all."""
    measured = Measured(plan)
    with Watch(plan) as watch:
        try:
            asyncio.run(_drive(plan, measured, watch))
        except KeyboardInterrupt:
            measured.is_interrupted = True
        except SetupError as error:
            if not measured.runs:
                raise
            measured.problem = error.message
    return measured


async def _drive(plan: Plan, measured: Measured, watch: Watch) -> None:
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(Client(server, plan.api_key)) for server in plan.servers
        ]
        for client in clients:
            await client.choose_model(plan.model)
        for client in clients:
            await _get_to_know(client, plan, measured)
            watch.say(f"{client.server.name}: {client.server.shown_url}, model {client.model}")
        measured.rate = measured.rates[plan.servers[0].name] or WORD_IS_TOKEN
        for round_number in range(1, plan.rounds + 1):
            first = (round_number - 1) % len(clients)  # nobody always comes after the same one
            for point in plan.points:
                for client in clients[first:] + clients[:first]:
                    watch.begin(f"round {round_number}, {point.label}, {client.server.name}")
                    await _measure_once(client, point, round_number, measured, watch)
                    watch.end()


async def _get_to_know(client: Client, plan: Plan, measured: Measured) -> None:
    name = client.server.name
    measured.rates[name] = await calibrate(client, plan.seed)
    measured.models[name] = client.model
    if not client.knows_ignore_eos:
        measured.without_ignore_eos.append(name)


async def _measure_once(
    client: Client, point: Point, round_number: int, measured: Measured, watch: Watch
) -> None:
    await asyncio.sleep(_SETTLE_S)
    plan = measured.plan
    lengths = plan.lengths.with_rate(measured.rate)
    load = plan.load(point, round_number, lengths)
    seen = Seen(time.monotonic())
    follower = asyncio.create_task(watch.follow(load, seen))
    try:
        await run_load(client, load, seen)
    finally:
        follower.cancel()
        with suppress(asyncio.CancelledError):
            await follower
        measured.add(point, client.server.name, round_number, seen)
