"""Runs one load against one server: clients that take turns with their answers, requests that come when
they come, and streams beside them."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from cli.bench.answers import Answer, Seen
from cli.bench.asks import Ask
from cli.bench.client import Client
from cli.bench.plan import Load
from cli.bench.workloads import Script
from shared.errors import SetupError

_START_TIMEOUT_S = 120.0
_POLL_S = 0.02
#: Of a client that has a time to fill: a server that is gone would be asked a thousand times a second.
_AFTER_FAILURE_S = 0.2


async def run_load(client: Client, load: Load, seen: Seen) -> None:
    """``seen`` is filled as it comes, and whole also when this is cancelled: what had not ended then is
    ``is_cut``."""
    try:
        if load.streams:
            await _run_beside(client, load, seen)
        else:
            await _run_scripts(client, load, seen)
    except asyncio.CancelledError:
        seen.is_interrupted = True
        raise
    finally:
        seen.ended_s = seen.ended_s or time.monotonic()
        _mark_cut(seen)


def _mark_cut(seen: Seen) -> None:
    for answer in seen.answers:
        if not answer.has_usage and not answer.error:
            answer.is_cut, answer.ended_s = True, seen.ended_s


async def _run_scripts(client: Client, load: Load, seen: Seen) -> None:
    seen.began_s, cpu_s = time.monotonic(), time.process_time()
    scripts = load.scripts()
    end_s = None if load.duration_s is None else seen.began_s + load.duration_s
    try:
        async with asyncio.TaskGroup() as group:
            if load.clients is None:
                group.create_task(_run_arrivals(client, load, scripts, seen, group))
            else:
                for _ in range(load.clients):
                    group.create_task(_run_client(client, scripts, end_s, seen.answers))
    finally:
        # Of the time that is measured, and of no other: streams may have run quietly before it.
        seen.cpu_s = time.process_time() - cpu_s
    # An open loop that nobody answers late still took its time.
    seen.ended_s = time.monotonic()


async def _run_client(
    client: Client, scripts: Iterator[Script], end_s: float | None, answers: list[Answer]
) -> None:
    """All clients take from the same scripts."""
    while end_s is None or time.monotonic() < end_s:
        script = next(scripts, None)
        if script is None:
            return
        is_answered = await _run_script(client, script, end_s, answers)
        if end_s is not None and not is_answered:
            await asyncio.sleep(_AFTER_FAILURE_S)


async def _run_arrivals(
    client: Client, load: Load, scripts: Iterator[Script], seen: Seen, group: asyncio.TaskGroup
) -> None:
    end_s = None if load.duration_s is None else seen.began_s + load.duration_s
    for arrival_s, script in zip(load.arrivals_s, scripts, strict=False):
        await asyncio.sleep(seen.began_s + arrival_s - time.monotonic())
        group.create_task(_run_script(client, script, end_s, seen.answers))


async def _run_script(
    client: Client, script: Script, end_s: float | None, answers: list[Answer]
) -> bool:
    """Whether all of it was answered that was asked. A chat whose turn failed is over: what would be said
    next has no sense."""
    history: tuple[Mapping[str, Any], ...] = ()
    for ask in script:
        if history and end_s is not None and time.monotonic() >= end_s:
            break
        full = ask.after(history) if ask.messages else ask
        answers.append(answer := Answer(time.monotonic()))
        await client.send(full, answer)
        if answer.error:
            return False
        history = (*full.messages, {"role": "assistant", "content": answer.text})
    return True


async def _run_beside(client: Client, load: Load, seen: Seen) -> None:
    async with _open_streams(client, load.streams, seen.streams):
        await _until_each_came(seen.streams, 0.0)
        seen.quiet_s = time.monotonic()
        await asyncio.sleep(load.quiet_s)
        await _run_scripts(client, load, seen)
        # A stream that was held up to the end has its gap counted too.
        await _until_each_came(seen.streams, seen.ended_s)


@asynccontextmanager
async def _open_streams(
    client: Client, asks: tuple[Ask, ...], answers: list[Answer]
) -> AsyncIterator[None]:
    tasks = []
    for ask in asks:
        answers.append(answer := Answer(time.monotonic()))
        tasks.append(asyncio.create_task(client.send(ask, answer)))
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _until_each_came(streams: list[Answer], after_s: float) -> None:
    """Until each stream has text that came after ``after_s``, or is over."""
    end_s = time.monotonic() + _START_TIMEOUT_S
    while waiting := [s for s in streams if not _has_come(s, after_s)]:
        if time.monotonic() > end_s:
            raise SetupError(f"{len(waiting)} of {len(streams)} streams stand still")
        await asyncio.sleep(_POLL_S)


def _has_come(stream: Answer, after_s: float) -> bool:
    is_over = stream.has_usage or bool(stream.error)
    return is_over or bool(stream.came_s and stream.came_s[-1] > after_s)
