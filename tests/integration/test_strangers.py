"""Whoever can write to Redis can spoil jobs, but runs no code here and harms no other job."""

import json
import os
import pickle
import socket
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from rq.executions import Execution

from shared.errors import ServiceError
from shared.keys import job_key, queue_key, queue_name
from shared.protocol import JobStatus
from shared.rq_job import GenerateJob, queue_for
from tests.links import MODEL, TTL_S, finish, make_broker, make_link, pop, record, serve, submit
from worker.intake import Intake

QUEUE = queue_key(queue_name(MODEL, "normal"))


class Bomb:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self._path),)


@pytest.fixture
def redis(flushed: Redis) -> Redis:
    serve(flushed)
    return flushed


def make_intake(redis: Redis, incarnation: str) -> Intake:
    return Intake(
        redis,
        model=MODEL,
        incarnation=incarnation,
        heartbeat_ttl_s=4,
        result_ttl_s=TTL_S,
        on_stop=lambda _: None,
        on_shutdown=lambda: None,
    )


@pytest.fixture
def intake(redis: Redis) -> Iterator[Intake]:
    intake = make_intake(redis, "w")
    intake.open()
    yield intake
    intake.close()


@pytest.mark.parametrize(
    "entry",
    [b"", b"x", b"\xff\xfe\x00", b"../../etc/passwd", b"a" * 100_000, b"0" * 32, b"{}"],
)
def test_what_is_no_job_is_dropped_with_a_line_and_the_next_job_runs(
    redis: Redis, entry: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    redis.rpush(QUEUE, entry)
    job_id = submit(make_broker(redis))
    link = make_link(redis, "w")
    (popped,) = pop(link, want=4)
    assert popped.job_id == job_id
    assert "is no whole job of ours" in caplog.text
    assert len(caplog.text) < 1000
    finish(link, popped)


@pytest.mark.parametrize(
    "damage",
    [
        {"attempt": "many"},
        {"created_ms": ""},
        {"count": "x"},
        {"seed": "-"},
    ],
)
def test_a_record_that_is_damaged_harms_no_other_job(
    redis: Redis, damage: dict[Any, Any], caplog: pytest.LogCaptureFixture
) -> None:
    broker = make_broker(redis)
    spoiled, whole = submit(broker), submit(broker)
    redis.hset(job_key(spoiled), mapping=damage)
    assert [p.job_id for p in pop(make_link(redis, "w"), want=4)] == [whole]
    assert spoiled in caplog.text


def test_a_record_of_another_type_harms_no_other_job(redis: Redis) -> None:
    broker = make_broker(redis)
    spoiled, whole = submit(broker), submit(broker)
    redis.delete(job_key(spoiled))
    redis.set(job_key(spoiled), "not a hash")
    assert [p.job_id for p in pop(make_link(redis, "w"), want=4)] == [whole]


def spoil(redis: Redis, job_id: str, path: Path, port: int) -> None:
    """Everything in RQ's hash that RQ would load, import, call or send somewhere."""
    bomb = pickle.dumps(Bomb(path))
    hooks: list[dict[str, Any]] = [
        {"url": f"http://127.0.0.1:{port}/", "job_status": status, "secret": None, "headers": {}}
        for status in ("finished", "failed")
    ]
    redis.hset(
        f"rq:job:{job_id}",
        mapping={
            "meta": bomb,
            "result": bomb,
            "func_name": "os.mkdir",
            "description": f"os.mkdir({str(path)!r})",
            "success_callback_name": "os.mkdir",
            "failure_callback_name": "os.mkdir",
            "stopped_callback_name": "os.mkdir",
            "webhooks": json.dumps(hooks),
            "retries_left": 0,
        },
    )


@pytest.mark.parametrize("status", [JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED])
def test_nothing_in_a_hash_is_unpickled_imported_called_or_sent(
    redis: Redis, intake: Intake, tmp_path: Path, status: JobStatus
) -> None:
    path = tmp_path / "made"
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.2)
    broker = make_broker(redis)
    job_id, abandoned = submit(broker), submit(broker)
    for each in (job_id, abandoned):
        spoil(redis, each, path, listener.getsockname()[1])
    pop(make_link(redis, "w"), want=2)
    for each in (job_id, abandoned):
        assert intake.take(each).request.prompt == "x"
    intake.beat()
    execution = next(iter(intake.executions.values()))
    assert isinstance(execution, Execution)
    intake.settle(job_id, status, "why")
    broker.tidy_registries()
    queue = queue_for(redis, queue_name(MODEL, "normal"))
    queue.started_job_registry.cleanup(timestamp=4e9)
    queue.failed_job_registry.cleanup(timestamp=4e9)
    queue.finished_job_registry.cleanup(timestamp=4e9)
    intake.run_maintenance_tasks()  # type: ignore[no-untyped-call]
    GenerateJob.fetch(abandoned, redis).refresh()  # type: ignore[no-untyped-call]
    assert not path.exists()
    with pytest.raises(TimeoutError):
        listener.accept()
    listener.close()


@pytest.mark.parametrize(
    "data",
    [
        b"not compressed",
        zlib.compress(b"not json"),
        zlib.compress(b'["f", null, [], {}]'),
        zlib.compress(b'["f", null, [{"request": {"prompt": "x"}, "seed": -1}], {}]'),
        zlib.compress(b'["f", null, ["text"], {}]'),
        zlib.compress(b"[1]"),
        zlib.compress(pickle.dumps(print)),
        zlib.compress(b"[" * 50_000),
    ],
)
def test_a_request_that_cannot_be_read_is_an_error_of_its_job_alone(
    redis: Redis, intake: Intake, data: bytes
) -> None:
    broker = make_broker(redis)
    spoiled, whole = submit(broker), submit(broker)
    redis.hset(f"rq:job:{spoiled}", "data", data)
    pop(make_link(redis, "w"), want=2)
    with pytest.raises(ServiceError):
        intake.take(spoiled)
    assert intake.take(whole).request.prompt == "x"
    assert record(redis, spoiled).status is JobStatus.RUNNING


def test_a_full_redis_keeps_no_job_from_running(redis: Redis) -> None:
    """Not even on a worker that starts just then."""
    broker = make_broker(redis)
    job_id = submit(broker)
    try:
        redis.config_set("maxmemory", 1)
        intake = make_intake(redis, "late")
        intake.open()
        (popped,) = pop(link := make_link(redis, "w"))
        assert intake.take(job_id).request.prompt == "x"
        finish(link, popped)
        intake.settle(job_id, JobStatus.COMPLETED)
    finally:
        redis.config_set("maxmemory", 0)
    intake.beat()
    intake.close()
    assert record(redis, job_id).status is JobStatus.COMPLETED
