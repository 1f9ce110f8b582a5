"""RQ's books of a worker that runs many jobs at once."""

import json
import time
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from redis import Redis
from rq.job import JobStatus as RqStatus

from shared.admission import Limits
from shared.broker import Broker
from shared.connection import connect
from shared.errors import BadRequest, InternalError
from shared.keys import SERVED
from shared.protocol import GenerateRequest, JobStatus
from shared.rq_job import GenerateJob, queue_for
from worker.intake import Intake

MODEL = "test-model"


@pytest.fixture
def redis(flushed: Redis) -> Redis:
    return flushed


@pytest.fixture
def stopped() -> list[str]:
    return []


@pytest.fixture
def intake(redis: Redis, valkey_url: str, stopped: list[str]) -> Iterator[Intake]:
    client = connect(valkey_url)
    intake = Intake(
        client,
        model=MODEL,
        incarnation="worker-0.abc",
        heartbeat_ttl_s=4,
        result_ttl_s=3600,
        on_stop=stopped.append,
        on_shutdown=lambda: stopped.append("shutdown"),
    )
    intake.open()
    yield intake
    intake.close()
    client.close()


def make_broker(redis: Redis) -> Broker:
    redis.hset(SERVED, MODEL, int(time.time() * 1000))
    limits = Limits(
        max_queued_jobs=100, max_queued_chars=1000, max_owner_jobs=0, worker_grace_ms=60_000
    )
    return Broker(redis, MODEL, 3600, limits)


def submit(redis: Redis, **fields: Any) -> str:
    request = GenerateRequest.model_validate({"prompt": "x"} | fields)
    job_id = make_broker(redis).submit(request).job_id
    redis.lpop(f"rq:queue:{MODEL}:{request.priority}")
    return job_id


def rq_job(redis: Redis, job_id: str) -> GenerateJob:
    return GenerateJob.fetch(job_id, redis)  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (JobStatus.COMPLETED, RqStatus.FINISHED),
        (JobStatus.FAILED, RqStatus.FAILED),
        (JobStatus.CANCELLED, RqStatus.STOPPED),
    ],
)
def test_rq_is_told_how_a_job_ended(
    redis: Redis, intake: Intake, status: JobStatus, expected: RqStatus
) -> None:
    job_id = submit(redis)
    args = intake.take(job_id)
    assert args.request.prompt == "x"
    assert rq_job(redis, job_id).get_status() is RqStatus.STARTED
    intake.settle(job_id, status, "why")
    assert rq_job(redis, job_id).get_status() is expected
    queue = queue_for(redis, f"{MODEL}:normal")
    assert queue.started_job_registry.get_job_ids() == []
    assert queue.get_job_ids() == []
    assert intake.executions == {}
    assert redis.exists(f"rq:results:{job_id}") == (status is not JobStatus.COMPLETED)
    assert 0 < redis.ttl(f"rq:job:{job_id}") <= 3600


def test_many_jobs_are_held_at_once_and_beaten_for(redis: Redis, intake: Intake) -> None:
    ids = [submit(redis) for _ in range(8)]
    for job_id in ids:
        intake.take(job_id)
    intake.beat()
    queue = queue_for(redis, f"{MODEL}:normal")
    assert sorted(queue.started_job_registry.get_job_ids(cleanup=False)) == sorted(ids)
    for job_id in ids:
        intake.settle(job_id, JobStatus.COMPLETED)
    assert queue.started_job_registry.count == 0
    assert queue.finished_job_registry.count == 8


def test_nothing_that_a_job_names_is_imported_or_called(redis: Redis, intake: Intake) -> None:
    job_id = submit(redis)
    redis.hset(
        f"rq:job:{job_id}",
        mapping={
            "success_callback_name": "os.getpid_missing",
            "failure_callback_name": "os.getpid_missing",
            "stopped_callback_name": "os.getpid_missing",
            "webhooks": json.dumps([{"url": "http://127.0.0.1:1/", "events": ["finished"]}]),
        },
    )
    intake.take(job_id)
    intake.settle(job_id, JobStatus.COMPLETED)
    assert rq_job(redis, job_id).get_status() is RqStatus.FINISHED


@pytest.mark.parametrize("wrong", [["os.system", None, [{"request": {}}], {}], ["f", None, [], {}]])
def test_a_job_that_is_not_ours_is_refused_in_words(
    redis: Redis, intake: Intake, wrong: list[Any]
) -> None:
    job_id = submit(redis)
    redis.hset(f"rq:job:{job_id}", "data", zlib.compress(json.dumps(wrong).encode()))
    with pytest.raises((BadRequest, InternalError)):
        intake.take(job_id)


def test_a_job_whose_request_is_gone_is_refused(intake: Intake) -> None:
    with pytest.raises(InternalError, match="gone"):
        intake.take("0" * 32)


def test_the_worker_of_rq_is_shown_while_it_lives(redis: Redis, intake: Intake) -> None:
    from rq.worker import BaseWorker

    names = [w.name for w in BaseWorker.all(connection=redis, job_class=GenerateJob)]
    assert names == ["worker-0.abc"]
    intake.close()
    assert BaseWorker.all(connection=redis, job_class=GenerateJob) == []


def test_rq_cleaners_that_find_an_abandoned_job_neither_fail_nor_lose_it(
    redis: Redis, intake: Intake
) -> None:
    job_id = submit(redis)
    intake.take(job_id)
    queue = queue_for(redis, f"{MODEL}:normal")
    queue.started_job_registry.cleanup(timestamp=4e9)
    assert rq_job(redis, job_id).get_status() is RqStatus.QUEUED
    assert queue.get_job_ids() == [job_id]


def test_rq_can_stop_a_job(redis: Redis, intake: Intake, stopped: list[str]) -> None:
    payload = {"channel": b"x", "type": "message", "data": b'{"command":"stop-job","job_id":"j"}'}
    intake.handle_payload(payload)
    assert stopped == ["j"]
