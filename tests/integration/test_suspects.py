"""A job that kills its workers is found out without taking its neighbours down."""

import pytest
from redis import Redis

from shared.broker import Broker
from shared.keys import queue_key
from shared.protocol import JobStatus
from shared.recovery import Sweeper
from tests.links import (
    MODEL,
    TTL_S,
    bury,
    finish,
    make_broker,
    make_link,
    pop,
    record,
    serve,
    submit,
    total,
    transcript,
)


@pytest.fixture
def redis(flushed: Redis) -> Redis:
    serve(flushed)
    return flushed


@pytest.fixture
def broker(redis: Redis) -> Broker:
    return make_broker(redis)


def kill_three_times(redis: Redis, num_jobs: int) -> None:
    """All that waits is in the batch of three workers that die, one after the other."""
    for death in range(3):
        assert len(pop(make_link(redis, f"dead{death}", slots=8), want=8)) == num_jobs
        bury(redis, f"dead{death}")


def test_from_the_third_death_on_a_job_runs_alone(redis: Redis, broker: Broker) -> None:
    suspect = submit(broker)
    kill_three_times(redis, 1)
    others = [submit(broker, priority="high") for _ in range(2)]
    link = make_link(redis, "w")
    (popped,) = pop(link, want=4)
    assert (popped.job_id, popped.attempt, popped.num_deaths) == (suspect, 4, 3)
    assert pop(link, [suspect], want=3) == [], "nothing runs beside it"
    finish(link, popped)
    assert [p.job_id for p in pop(link, want=4)] == others
    assert all(p.num_deaths is None for p in pop(link, want=4))


def test_a_death_while_alone_fails_the_job_and_its_neighbours_complete(
    redis: Redis, broker: Broker
) -> None:
    ids = [submit(broker) for _ in range(3)]
    kill_three_times(redis, 3)
    poison, ended = ids[1], []
    link = make_link(redis, "w")
    for _ in range(3):
        (popped,) = pop(link, want=4)
        if popped.job_id == poison:
            bury(redis, "w")
            link = make_link(redis, "w")
        else:
            finish(link, popped)
            ended.append(popped.job_id)
    assert sorted(ended) == sorted({*ids} - {poison})
    last = transcript(redis, poison).end
    assert last is not None
    assert last.error is not None
    assert last.error.code == "worker_lost"
    assert "4 times" in last.error.message
    assert total(redis).jobs_failed == 1


def test_the_others_serve_on_while_one_worker_runs_suspects(redis: Redis, broker: Broker) -> None:
    suspects = [submit(broker) for _ in range(2)]
    kill_three_times(redis, 2)
    first, second = make_link(redis, "first"), make_link(redis, "second")
    (alone,) = pop(first, want=4)
    normal = [submit(broker) for _ in range(3)]
    assert [p.job_id for p in pop(second, want=4)] == normal
    finish(first, alone)
    (next_one,) = pop(first, want=4)
    assert {alone.job_id, next_one.job_id} == set(suspects)


def test_a_worker_finishes_its_batch_before_it_runs_a_suspect(redis: Redis, broker: Broker) -> None:
    link = make_link(redis, "w")
    running = submit(broker)
    (first,) = pop(link)
    suspect = submit(broker)
    kill_three_times(redis, 1)
    waiting = submit(broker)
    assert pop(link, [running], want=3) == [], "it empties itself"
    finish(link, first)
    (popped,) = pop(link, want=4)
    assert popped.job_id == suspect
    finish(link, popped)
    assert [p.job_id for p in pop(link, want=4)] == [waiting]


def test_an_operators_stop_of_the_lone_worker_does_not_fail_the_suspect(
    redis: Redis, broker: Broker
) -> None:
    suspect = submit(broker)
    kill_three_times(redis, 1)
    pop(make_link(redis, "w"))
    sweeper = Sweeper(heartbeat_ttl_s=4, max_deaths=3, result_ttl_s=TTL_S)
    sweeper.bury(redis, "w", only_if_lapsed=False, counts=False)
    assert record(redis, suspect).status is JobStatus.QUEUED
    assert broker.position(suspect, f"{MODEL}:normal") == 1
    parked = make_link(redis, "w2")
    (popped,) = pop(parked)
    parked.park(suspect, popped.attempt)
    (again,) = pop(make_link(redis, "w3"))
    assert (again.job_id, again.num_deaths) == (suspect, 3)


def test_a_waiting_suspect_is_cancelled_like_any_other(redis: Redis, broker: Broker) -> None:
    suspect = submit(broker)
    kill_three_times(redis, 1)
    assert broker.cancel(suspect) == "cancelled"
    assert pop(make_link(redis, "w"), want=4) == []


def test_a_draining_lone_worker_gives_the_turn_away(redis: Redis, broker: Broker) -> None:
    """Its turn lapses by itself, so that suspects do not wait for one that takes nothing more."""
    link = make_link(redis, "w")
    running = submit(broker)
    pop(link)
    suspect = submit(broker)
    kill_three_times(redis, 1)
    assert pop(link, [running], want=3) == []
    assert pop(make_link(redis, "other"), want=4) == [], "it is the turn of the first"
    long_ago = redis.time()[0] * 1000 - 6000
    redis.hset(f"mini-vllm:load:{MODEL}", "w", f"4 4 {long_ago}")
    (popped,) = pop(make_link(redis, "other"), want=4)
    assert popped.job_id == suspect


def test_a_worker_of_one_slot_keeps_the_turn_while_it_runs_a_suspect(
    redis: Redis, broker: Broker
) -> None:
    """It has no free slot, so it does not come by meanwhile."""
    for _ in range(2):
        submit(broker)
    kill_three_times(redis, 2)
    assert len(pop(make_link(redis, "w", slots=1))) == 1
    long_ago = redis.time()[0] * 1000 - 60_000
    redis.hset(f"mini-vllm:load:{MODEL}", "w", f"1 1 {long_ago}")
    normal = submit(broker)
    assert [p.job_id for p in pop(make_link(redis, "other"), want=4)] == [normal]


def test_a_suspect_that_rqs_cleaners_put_into_a_normal_queue_still_runs_alone(
    redis: Redis, broker: Broker
) -> None:
    suspect = submit(broker)
    kill_three_times(redis, 1)
    queue = queue_key(f"{MODEL}:normal")
    redis.rpush(queue, suspect, suspect)
    mate = submit(broker)
    link = make_link(redis, "w")
    (popped,) = pop(link, want=4)
    assert (popped.job_id, popped.num_deaths) == (suspect, 3)
    assert [p.job_id for p in pop(make_link(redis, "other"), want=4)] == [mate]
    finish(link, popped)
    assert pop(link, want=4) == []
