"""The last hour as all gateways write it together, and what is left of it when Redis is not."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import httpx
from redis import Redis
from redis.asyncio import Redis as AsyncRedis

from api.complaints import Complaints
from api.live.history import HistoryReader, HistoryWriter
from api.live.points import MAX_POINTS, Point, Sample
from shared.connection import connect_async
from shared.keys import HISTORY, HISTORY_SAMPLE, history_turn_key
from shared.recovery import Sweeper
from tests.gateway import PlayedWorker
from tests.integration.conftest import MODEL

Result = TypeVar("Result")


def run(url: str, what: Callable[[AsyncRedis], Awaitable[Result]]) -> Result:
    async def with_client() -> Result:
        client = connect_async(url)
        try:
            return await what(client)
        finally:
            await client.aclose()

    return asyncio.run(with_client())


def make_writer(client: AsyncRedis) -> HistoryWriter:
    return HistoryWriter(client, MODEL, Complaints("redis://x"))


def write(url: str) -> bool:
    return run(url, lambda client: make_writer(client).write())


def begin_earlier(redis: Redis, seconds: float) -> None:
    """As if the last sample had been taken before that."""
    sample = Sample.from_wire(redis.get(HISTORY_SAMPLE))  # type: ignore[arg-type]
    assert sample
    earlier = sample.model_copy(update={"at": sample.at - seconds})
    redis.set(HISTORY_SAMPLE, earlier.model_dump_json())


def points(url: str) -> list[Point]:
    async def read(client: AsyncRedis) -> list[Point]:
        reader = HistoryReader(client)
        await reader.look((await client.time())[0])
        return reader.points()

    return run(url, read)


def submit(http: httpx.Client) -> None:
    assert http.post("/generate", json={"prompt": "x"}).status_code == 202


def test_a_point_is_what_all_workers_did_since_the_last_sample_whoever_died(
    valkey_url: str, flushed: Redis, http: httpx.Client, worker: PlayedWorker
) -> None:
    for _ in range(3):
        submit(http)
    worker.play("before")
    assert write(valkey_url) and points(valkey_url) == []
    worker.play("a", "b", "c")
    worker.start(worker.take())
    submit(http)
    Sweeper(heartbeat_ttl_s=1, max_deaths=3, result_ttl_s=60).bury(
        flushed, "worker-0", only_if_lapsed=False
    )
    begin_earlier(flushed, 20)
    assert write(valkey_url)
    (point,) = points(valkey_url)
    assert 0.1 < point.tokens_per_s <= 0.15, "3 tokens in 20 s and a little"
    assert 0.04 < point.requests_per_s <= 0.05
    assert 0.25 < point.prompt_tokens_per_s <= 0.3
    assert (point.errors_per_s, point.running, point.queued) == (0, 0, 2)
    assert point.e2e_p50_s is not None and point.ttft_p99_s is not None


def test_of_two_gateways_that_write_at_once_one_does(valkey_url: str, flushed: Redis) -> None:
    write(valkey_url)
    begin_earlier(flushed, 10)

    async def race(client: AsyncRedis) -> list[bool]:
        return list(await asyncio.gather(*(make_writer(client).write() for _ in range(8))))

    won = run(valkey_url, race)
    assert 1 <= sum(won) < 8
    assert len(points(valkey_url)) == sum(won), "each follows the one before"


def test_a_sample_that_is_none_is_written_over(valkey_url: str, flushed: Redis) -> None:
    flushed.lpush(HISTORY_SAMPLE, "no text")
    assert write(valkey_url) and points(valkey_url) == []
    sample = Sample.from_wire(flushed.get(HISTORY_SAMPLE))  # type: ignore[arg-type]
    assert sample
    less = sample.model_copy(update={"at": sample.at - 10, "ended": -(10**400)})
    flushed.set(HISTORY_SAMPLE, less.model_dump_json())
    assert write(valkey_url) and points(valkey_url) == []
    begin_earlier(flushed, 10)
    assert write(valkey_url) and len(points(valkey_url)) == 1


def test_a_turn_is_taken_by_one_gateway(valkey_url: str, flushed: Redis) -> None:
    async def turns(client: AsyncRedis) -> list[bool]:
        first, second = make_writer(client), make_writer(client)
        return [await first.take_turn(), await second.take_turn(), await first.take_turn()]

    taken = run(valkey_url, turns)
    assert taken[0] and sum(taken) == len(flushed.keys(history_turn_key("*")))  # type: ignore[arg-type]


def test_a_gateway_that_froze_in_its_turn_counts_nothing_twice(
    valkey_url: str, flushed: Redis
) -> None:
    async def freeze(client: AsyncRedis) -> bool:
        writer = make_writer(client)
        read = writer._now_s  # its last question before it writes

        async def late() -> float:
            flushed.set(HISTORY_SAMPLE, "another gateway's")
            return await read()

        writer._now_s = late  # type: ignore[method-assign]
        return await writer.write()

    assert not run(valkey_url, freeze)
    assert flushed.get(HISTORY_SAMPLE) == b"another gateway's"


def test_the_history_is_of_an_hour_and_no_more(valkey_url: str, flushed: Redis) -> None:
    now_s = flushed.time()[0]
    old = Point(
        at=0,
        tokens_per_s=1,
        prompt_tokens_per_s=0,
        requests_per_s=0,
        errors_per_s=0,
        running=0,
        queued=0,
    )
    for age_s in (3700, 3500, 20):
        entry: Any = {"p": old.model_copy(update={"at": now_s - age_s}).model_dump_json()}
        flushed.xadd(HISTORY, entry)
    for junk in ({"p": "junk"}, {"q": "1"}):
        flushed.xadd(HISTORY, junk)  # type: ignore[arg-type]
    assert [round(now_s - point.at) for point in points(valkey_url)] == [3500, 20]
    for _ in range(MAX_POINTS):
        flushed.xadd(HISTORY, entry)
    write(valkey_url)
    begin_earlier(flushed, 10)
    write(valkey_url)
    assert flushed.xlen(HISTORY) == MAX_POINTS


def test_a_redis_that_was_emptied_is_a_new_beginning(valkey_url: str, flushed: Redis) -> None:
    async def look(client: AsyncRedis) -> list[tuple[int, int, int]]:
        seen, reader, writer = [], HistoryReader(client), make_writer(client)
        for step in ("begin", "point", "point", "flush", "begin", "point"):
            if step == "flush":
                await client.flushall()
            else:
                if step == "point":
                    await asyncio.to_thread(begin_earlier, flushed, 10)
                await writer.write()
            await reader.look((await client.time())[0])
            seen.append((reader.epoch, reader.num_read, len(reader.points())))
        return seen

    assert run(valkey_url, look) == [
        (0, 0, 0),
        (0, 1, 1),
        (0, 2, 2),
        (1, 0, 0),
        (1, 0, 0),
        (1, 1, 1),
    ]
