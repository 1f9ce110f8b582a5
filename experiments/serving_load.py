"""Runs one load against one server: clients that take turns with their answers, and streams beside them."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from experiments.serving_answers import Answer, Seen
from experiments.serving_client import Client
from experiments.serving_workloads import LONG_OUTPUT_TOKENS, STREAM_TOKENS, Load
from shared.errors import SetupError

_START_TIMEOUT_S = 120.0
_POLL_S = 0.02


async def run_load(client: Client, load: Load, output_tokens: int, quiet_s: float) -> Seen:
    """``quiet_s`` is how long the streams run undisturbed."""
    if load.streams:
        return await _run_beside(client, load, quiet_s)
    seen = Seen(time.monotonic())
    await _run_clients(client, load, output_tokens, seen)
    return seen


async def _run_clients(client: Client, load: Load, output_tokens: int, seen: Seen) -> None:
    run = _run_chat if load.is_chat else _run_script
    await asyncio.gather(*(run(client, s, output_tokens, seen.answers) for s in load.scripts))
    seen.ended_s = time.monotonic()


async def _run_script(
    client: Client, script: tuple[str, ...], output_tokens: int, answers: list[Answer]
) -> None:
    for prompt in script:
        answers.append(answer := Answer(time.monotonic()))
        await client.complete(prompt, output_tokens, answer)


async def _run_chat(
    client: Client, script: tuple[str, ...], output_tokens: int, answers: list[Answer]
) -> None:
    messages: list[dict[str, str]] = []
    for text in script:
        messages.append({"role": "user", "content": text})
        answers.append(answer := Answer(time.monotonic()))
        await client.chat(messages, output_tokens, answer)
        messages.append({"role": "assistant", "content": answer.text})


async def _run_beside(client: Client, load: Load, quiet_s: float) -> Seen:
    seen = Seen(time.monotonic())
    async with _open_streams(client, load.streams, seen.streams):
        await _until_each_came(seen.streams, 0.0)
        seen.quiet_s = time.monotonic()
        await asyncio.sleep(quiet_s)
        await _run_clients(client, load, LONG_OUTPUT_TOKENS, seen)
        # A stream that was held up to the end has its gap counted too.
        await _until_each_came(seen.streams, seen.ended_s)
    return seen


@asynccontextmanager
async def _open_streams(
    client: Client, prompts: tuple[str, ...], answers: list[Answer]
) -> AsyncIterator[None]:
    tasks = []
    for prompt in prompts:
        answers.append(answer := Answer(time.monotonic()))
        tasks.append(asyncio.create_task(client.complete(prompt, STREAM_TOKENS, answer)))
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
