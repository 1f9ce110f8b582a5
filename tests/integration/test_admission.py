"""What the queue takes, what it refuses, and how often one key may come."""

import pytest
from redis import Redis

from shared.errors import (
    IdempotencyConflict,
    NoWorkerReady,
    QueueFull,
    RedisFull,
    TooManyJobs,
)
from shared.histograms import counter_field
from shared.keys import SERVED, SERVICE_TOTALS, WAITING, queue_key
from shared.protocol import GenerateRequest, JobStatus
from shared.scripts import run_script
from tests.links import MODEL, bury, finish, make_broker, make_link, pop, serve, submit


@pytest.fixture
def redis(flushed: Redis) -> Redis:
    serve(flushed)
    return flushed


REQUEST = GenerateRequest(prompt="x", max_tokens=5)


def test_a_full_queue_takes_one_more_for_each_that_leaves(redis: Redis) -> None:
    broker = make_broker(redis, max_queued_jobs=2)
    submit(broker)
    submit(broker, priority="low")
    with pytest.raises(QueueFull, match="2 jobs wait, at most 2 may"):
        submit(broker, priority="high")
    pop(make_link(redis, "w"))
    submit(broker)
    with pytest.raises(QueueFull):
        submit(broker)


def test_characters_that_wait_are_bounded_and_counted_exactly(redis: Redis) -> None:
    broker = make_broker(redis, max_queued_chars=100)
    first = submit(broker, prompt="a" * 60)
    with pytest.raises(QueueFull, match="characters"):
        submit(broker, prompt="b" * 50)
    second = submit(broker, prompt="b" * 40)
    assert redis.hget(WAITING, f"chars:{MODEL}") == b"100"
    link = make_link(redis, "w")
    (popped,) = pop(link)
    assert redis.hget(WAITING, f"chars:{MODEL}") == b"40"
    bury(redis, "w")
    assert redis.hget(WAITING, f"chars:{MODEL}") == b"100", "it waits again"
    broker.cancel(second)
    broker.cancel(first)
    assert redis.hlen(WAITING) == 0
    assert popped.job_id == first


def test_a_prompt_larger_than_the_bound_is_taken_by_an_empty_queue(redis: Redis) -> None:
    broker = make_broker(redis, max_queued_chars=10)
    submit(broker, prompt="a" * 60)
    with pytest.raises(QueueFull):
        submit(broker, prompt="b")


def test_a_refusal_says_when_to_come_again_by_the_measured_rate(redis: Redis) -> None:
    """8 of 4 slots wait, a job takes 1 s: half of them are served after 1 s; with 10 s, after 10."""
    broker = make_broker(redis, max_queued_jobs=8)
    link = make_link(redis, "w", slots=4)
    for _ in range(2):
        submit(broker)
        (popped,) = pop(link)
        finish(link, popped)
    for _ in range(8):
        submit(broker)
    with pytest.raises(QueueFull) as full:
        submit(broker)
    assert full.value.retry_after_s == 1
    redis.lset(f"mini-vllm:service-ms:{MODEL}", 0, "19000")
    with pytest.raises(QueueFull) as full:
        submit(broker)
    assert full.value.retry_after_s == 10


def test_the_jobs_of_one_owner_are_bounded_on_their_own(redis: Redis) -> None:
    broker = make_broker(redis, max_owner_jobs=1)
    job_id = submit(broker, owner="a")
    with pytest.raises(TooManyJobs, match="at most 1 may"):
        submit(broker, owner="a")
    submit(broker, owner="b")
    broker.cancel(job_id)
    submit(broker, owner="a")


def test_without_any_worker_of_late_nothing_is_taken(redis: Redis) -> None:
    broker = make_broker(redis)
    redis.hset(SERVED, MODEL, 1)
    with pytest.raises(NoWorkerReady, match=MODEL):
        submit(broker)
    make_link(redis, "w")
    submit(broker)


def test_a_nearly_full_redis_takes_nothing_but_finishes_what_it_has(redis: Redis) -> None:
    broker = make_broker(redis)
    job_id = submit(broker)
    link = make_link(redis, "w")
    used = int(redis.info("memory")["used_memory"])
    try:
        redis.config_set("maxmemory", int(used * 1.05))
        with pytest.raises(RedisFull):
            submit(broker)
        redis.config_set("maxmemory", used // 2)
        with pytest.raises(RedisFull):
            submit(broker)
        (popped,) = pop(link)
        finish(link, popped)
    finally:
        redis.config_set("maxmemory", 0)
    assert popped.job_id == job_id
    assert redis.hget(SERVICE_TOTALS, counter_field(MODEL, "refused_redis_full")) == b"2"
    submit(broker)


def test_the_same_idempotency_key_and_body_give_the_same_job(redis: Redis) -> None:
    broker = make_broker(redis)
    first = broker.submit(REQUEST, idempotency_key="k")
    again = broker.submit(REQUEST, idempotency_key="k")
    assert (first.is_new, again.is_new) == (True, False)
    assert (again.job_id, again.seed, again.position) == (first.job_id, first.seed, 1)
    assert redis.llen(queue_key(f"{MODEL}:normal")) == 1
    assert len(first.job_id) == 32
    (popped,) = pop(link := make_link(redis, "w"))
    running = broker.submit(REQUEST, idempotency_key="k")
    assert (running.status, running.position) == (JobStatus.RUNNING, None)
    finish(link, popped)
    ended = broker.submit(REQUEST, idempotency_key="k")
    assert (ended.job_id, ended.status) == (first.job_id, JobStatus.COMPLETED)


def test_another_body_or_another_owner_is_another_matter(redis: Redis) -> None:
    broker = make_broker(redis)
    first = broker.submit(REQUEST, owner="a", idempotency_key="k")
    with pytest.raises(IdempotencyConflict):
        broker.submit(GenerateRequest(prompt="y"), owner="a", idempotency_key="k")
    other = broker.submit(REQUEST, owner="b", idempotency_key="k")
    assert other.is_new
    assert other.job_id != first.job_id


def test_a_known_idempotency_key_is_answered_by_a_full_queue(redis: Redis) -> None:
    broker = make_broker(redis, max_queued_jobs=1)
    first = broker.submit(REQUEST, idempotency_key="k")
    assert broker.submit(REQUEST, idempotency_key="k").job_id == first.job_id
    with pytest.raises(QueueFull):
        broker.submit(REQUEST, idempotency_key="l")


def test_an_owner_has_its_share_of_a_minute_and_no_more(redis: Redis) -> None:
    assert [run_script(redis, "request", "a", 3) for _ in range(3)] == [0, 0, 0]
    assert 59_000 < run_script(redis, "request", "a", 3) <= 60_000
    assert run_script(redis, "request", "b", 3) == 0
    redis.lset("mini-vllm:requests:a", -1, "1")
    assert run_script(redis, "request", "a", 3) == 0, "the oldest of the three is long ago"
