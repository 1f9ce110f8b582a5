"""The scripts, the broker and the worker's line to a real Valkey."""

from typing import Any

import pytest
from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

from shared.broker import Broker
from shared.keys import (
    OPEN,
    WORKERS,
    job_key,
    queue_key,
    stream_key,
    taken_key,
    worker_totals_key,
)
from shared.protocol import (
    Event,
    FinishReason,
    GenerateRequest,
    JobStatus,
    StartEvent,
)
from shared.recovery import Sweeper
from shared.rq_job import GenerateJob
from shared.scripts import run_script
from shared.stream import Buried, Entry
from tests.factories import Clock
from tests.links import (
    MODEL,
    TTL_S,
    bury,
    end,
    finish,
    make_broker,
    make_link,
    pop,
    record,
    serve,
    submit,
    token,
    total,
    transcript,
)
from tests.servers import wait_for


@pytest.fixture
def redis(flushed: Redis) -> Redis:
    return flushed


@pytest.fixture
def broker(redis: Redis) -> Broker:
    serve(redis)
    return make_broker(redis)


def test_queues_are_emptied_by_priority_then_in_order(redis: Redis, broker: Broker) -> None:
    ids = [submit(broker, priority=p) for p in ("low", "normal", "high", "normal")]
    link = make_link(redis, "w")
    assert [p.job_id for p in pop(link, want=4)] == [ids[2], ids[1], ids[3], ids[0]]


def test_positions_count_what_is_in_front(redis: Redis, broker: Broker) -> None:
    low = submit(broker, priority="low")
    second = broker.submit(GenerateRequest(prompt="x", priority="normal"))
    assert second.position == 1
    assert broker.position(low, f"{MODEL}:low") == 2


def test_a_job_runs_to_its_end_and_is_counted_once(redis: Redis, broker: Broker) -> None:
    job_id = submit(broker)
    link = make_link(redis, "w")
    (popped,) = pop(link)
    assert (popped.job_id, popped.attempt, popped.count) == (job_id, 1, 0)
    events: list[Event] = [
        StartEvent(prompt_tokens=5),
        token(0),
        token(1, "b"),
        end(tokens=2),
    ]
    entries = [Entry(job_id, 1, event, busy_ms=50) for event in events]
    assert link.exchange(entries, [job_id], 0) == ({}, [])
    assert link.exchange(entries, [job_id], 0)[0] == {job_id: "ended"}
    assert transcript(redis, job_id).text == "ab"
    assert len(redis.xrange(stream_key(job_id))) == 4  # type: ignore[arg-type]
    counted = total(redis, worker_totals_key("w"))
    assert (counted.jobs_completed, counted.generated_tokens, counted.prompt_tokens) == (1, 2, 5)
    assert counted.busy_ms == 50
    assert record(redis, job_id).status is JobStatus.COMPLETED
    assert 0 < redis.ttl(stream_key(job_id)) <= TTL_S


def test_an_outdated_attempt_cannot_write(redis: Redis, broker: Broker) -> None:
    job_id = submit(broker)
    old, new = make_link(redis, "old"), make_link(redis, "new")
    pop(old)
    old.exchange([Entry(job_id, 1, token(0))], [job_id], 0)
    assert bury(redis, "old") == [job_id]
    (popped,) = pop(new)
    assert (popped.attempt, popped.count) == (2, 1)
    with pytest.raises(Buried):
        old.exchange([Entry(job_id, 1, token(1, "z"))], [job_id], 0)
    run_script(redis, "register", "old", 60_000, "{}", MODEL)
    verdict, _ = old.exchange([Entry(job_id, 1, token(1, "z"))], [job_id], 0)
    assert verdict == {job_id: "fenced"}
    new.exchange([Entry(job_id, 2, token(1, "b", 2)), Entry(job_id, 2, end())], [job_id], 0)
    assert transcript(redis, job_id).text == "ab"


def test_buried_totals_are_folded_once_and_never_go_back(redis: Redis, broker: Broker) -> None:
    job_id = submit(broker)
    link = make_link(redis, "w")
    pop(link)
    link.exchange([Entry(job_id, 1, token(0)), Entry(job_id, 1, end())], [job_id], 0)
    assert bury(redis, "w") == []
    assert bury(redis, "w") is None
    assert (total(redis).jobs_completed, total(redis).generated_tokens) == (1, 1)


def test_a_job_that_kills_its_workers_fails_in_the_end(redis: Redis, broker: Broker) -> None:
    job_id = submit(broker)
    for death in range(1, 5):
        pop(make_link(redis, f"w{death}"))
        bury(redis, f"w{death}")
    last = transcript(redis, job_id).end
    assert last is not None
    assert last.error is not None
    assert (last.status, last.error.code, last.attempts) == (JobStatus.FAILED, "worker_lost", 4)
    assert pop(make_link(redis, "w5")) == []
    assert total(redis).jobs_failed == 1


def test_a_lapsed_heartbeat_is_noticed_only_when_redis_has_answered_long_enough(
    redis: Redis, broker: Broker
) -> None:
    submit(broker)
    pop(make_link(redis, "w"))
    redis.delete("mini-vllm:beat:w")
    clock = Clock()
    sweeper = make_sweeper(clock)
    for now_s in (100.0, 103.0, 106.0, 107.9):
        clock.now_s = now_s
        assert sweeper.sweep(redis) == {}
    clock.now_s = 108.0
    assert list(sweeper.sweep(redis)) == ["w"]
    assert redis.smembers(WORKERS) == set()


def make_sweeper(clock: Clock) -> Sweeper:
    return Sweeper(heartbeat_ttl_s=4, max_deaths=3, result_ttl_s=TTL_S, clock=clock)


def settled_sweeper(redis: Redis, clock: Clock) -> Sweeper:
    """It has looked for ten seconds."""
    sweeper = make_sweeper(clock)
    for _ in range(10):
        clock.now_s += 1
        assert sweeper.sweep(redis) == {}
    return sweeper


def test_a_worker_that_beats_again_soon_is_not_buried(redis: Redis) -> None:
    """All heartbeats lapse at once when Redis' clock steps, or when it was frozen."""
    make_link(redis, "w")
    clock = Clock()
    sweeper = settled_sweeper(redis, clock)
    redis.delete("mini-vllm:beat:w")
    for _ in range(2):
        clock.now_s += 0.9
        assert sweeper.sweep(redis) == {}
    make_link(redis, "w")
    clock.now_s += 1
    assert sweeper.sweep(redis) == {}
    redis.delete("mini-vllm:beat:w")
    clock.now_s += 1
    assert sweeper.sweep(redis) == {}, "the time of its silence begins anew"
    clock.now_s += 2
    assert list(sweeper.sweep(redis)) == ["w"]


def test_a_sweeper_that_did_not_look_for_a_while_does_not_know_what_redis_did(
    redis: Redis,
) -> None:
    make_link(redis, "w")
    clock = Clock()
    sweeper = settled_sweeper(redis, clock)
    redis.delete("mini-vllm:beat:w")
    clock.now_s += 20
    for _ in range(8):
        assert sweeper.sweep(redis) == {}
        clock.now_s += 0.9
    assert redis.smembers(WORKERS) == {b"w"}


def test_a_queued_job_is_cancelled_at_once_and_a_running_one_is_told(
    redis: Redis, broker: Broker
) -> None:
    queued, running = submit(broker, priority="low"), submit(broker)
    link = make_link(redis, "w")
    pop(link)
    assert broker.cancel(queued) == "cancelled"
    assert broker.cancel(queued) == "ended"
    assert broker.cancel(running) == "cancelling"
    assert broker.cancel("unknown") == "missing"
    assert link.exchange([Entry(running, 1, None)], [running], 0)[0] == {running: "cancelled"}
    assert transcript(redis, queued).end.status is JobStatus.CANCELLED  # type: ignore[union-attr]
    assert pop(link, [running]) == []
    assert total(redis).jobs_cancelled == 1


def test_a_queued_job_past_its_deadline_ends_with_timeout(redis: Redis, broker: Broker) -> None:
    job_id = submit(broker, timeout_s=0.001)
    ended: list[str] = []
    while not ended:
        ended = broker.expire()
    assert ended == [job_id]
    last = transcript(redis, job_id).end
    assert last is not None
    assert (last.status, last.finish_reason) == (JobStatus.FAILED, FinishReason.TIMEOUT)


def test_jobs_are_shared_evenly(redis: Redis, broker: Broker) -> None:
    for _ in range(8):
        submit(broker)
    held: dict[str, list[str]] = {"a": [], "b": []}
    links = {name: make_link(redis, name) for name in held}
    for name in held:
        pop(links[name], want=0)
    for _ in range(8):
        for name, link in links.items():
            held[name] += [p.job_id for p in pop(link, held[name], want=4 - len(held[name]) or 1)]
    assert {name: len(ids) for name, ids in held.items()} == {"a": 4, "b": 4}


def test_a_second_entry_of_a_running_job_is_dropped(redis: Redis, broker: Broker) -> None:
    job_id = submit(broker)
    pop(make_link(redis, "a"))
    redis.rpush(f"rq:queue:{MODEL}:normal", job_id)
    assert pop(make_link(redis, "b")) == []
    assert record(redis, job_id).worker == "a"


def test_a_parked_job_goes_to_the_front_without_counting_a_death(
    redis: Redis, broker: Broker
) -> None:
    first = submit(broker)
    link = make_link(redis, "w")
    (popped,) = pop(link)
    submit(broker)
    link.park(first, popped.attempt)
    assert redis.hget(job_key(first), "deaths") == b"0"
    assert [p.job_id for p in pop(link)] == [first]


def test_what_was_popped_without_an_answer_is_reclaimed(redis: Redis, broker: Broker) -> None:
    job_id = submit(broker)
    link = make_link(redis, "w")
    pop(link)
    assert run_script(redis, "reclaim", "w") == [job_id.encode()]
    assert run_script(redis, "reclaim", "w") == []
    assert [p.attempt for p in pop(link)] == [2]


def test_a_restart_of_redis_forgets_scripts_and_nothing_else(redis: Redis, broker: Broker) -> None:
    job_id = submit(broker)
    link = make_link(redis, "w")
    pop(link)
    redis.script_flush()
    link.exchange([Entry(job_id, 1, token(0))], [job_id], 1)
    assert transcript(redis, job_id).text == "a"


def test_a_script_that_redis_does_not_know_yet_makes_no_other_run_twice(
    redis: Redis, broker: Broker
) -> None:
    first = submit(broker)
    link = make_link(redis, "w")
    redis.script_flush()
    pop(link)
    others = [submit(broker), submit(broker)]
    _, popped = link.exchange([Entry(first, 1, token(0))], [first], 3)
    assert [p.job_id for p in popped] == others
    assert transcript(redis, first).text == "a"


def test_names_in_the_scripts_are_those_of_the_keys_module(redis: Redis, broker: Broker) -> None:
    job_id = submit(broker, timeout_s=100, owner="me")
    submit(broker, timeout_s=100, owner="me")
    link = make_link(redis, "w")
    pop(link)
    link.exchange([Entry(job_id, 1, token(0))], [job_id], 0)
    run_script(redis, "request", "me", 1)
    run_script(redis, "fail", "w", "{}", 60, 1)
    from shared import keys

    for key in (
        keys.WORKERS,
        keys.JOBS,
        keys.jobs_key("me"),
        keys.OWNERS,
        keys.OPEN,
        keys.DEADLINES,
        keys.WAITING,
        keys.SERVED,
        keys.NEWS,
        keys.FAILURES,
        keys.requests_key("me"),
        keys.queue_key(keys.queue_name(MODEL, "normal")),
        keys.job_key(job_id),
        keys.stream_key(job_id),
        keys.worker_key("w"),
        keys.worker_totals_key("w"),
        keys.beat_key("w"),
        keys.bell_key("w"),
    ):
        if key != keys.bell_key("w"):  # rung only for a worker that has been seen
            assert redis.exists(key), key
    submit(broker)
    assert redis.exists(keys.bell_key("w"))


def test_an_end_whose_answer_was_lost_is_not_taken_back(redis: Redis, broker: Broker) -> None:
    job_id = submit(broker)
    link = make_link(redis, "w")
    pop(link)
    real, failures = link._client, [RedisConnectionError("gone")]

    class Flaky:
        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

        def pipeline(self, **options: Any) -> Any:
            if failures:
                raise failures.pop()
            return real.pipeline(**options)

    link._client, link._may_wait = Flaky(), lambda: True  # type: ignore[assignment]
    stops, _ = link.exchange([Entry(job_id, 1, token(0)), Entry(job_id, 1, end())], [], 1)
    assert (stops, failures) == ({}, [])
    assert record(redis, job_id).status is JobStatus.COMPLETED


def test_tokens_that_redis_has_lost_are_made_again_by_another_attempt(
    redis: Redis, broker: Broker
) -> None:
    job_id, other = submit(broker), submit(broker)
    link = make_link(redis, "w")
    pop(link, want=2)
    entries = [Entry(job_id, 1, token(3)), Entry(job_id, 1, end()), Entry(other, 1, token(0))]
    assert link.exchange(entries, [job_id, other], 0)[0] == {job_id: "fenced"}
    assert transcript(redis, other).num_tokens == 1
    assert [(p.job_id, p.count) for p in pop(link, [other])] == [(job_id, 0)]
    assert redis.hget(job_key(job_id), "deaths") == b"0"


def test_a_death_that_the_operator_caused_does_not_count(redis: Redis, broker: Broker) -> None:
    job_id = submit(broker)
    pop(make_link(redis, "w"))
    sweeper = Sweeper(heartbeat_ttl_s=4, max_deaths=1, result_ttl_s=TTL_S)
    assert sweeper.bury(redis, "w", only_if_lapsed=False, counts=False) == [job_id]
    assert record(redis, job_id).status is JobStatus.QUEUED


def test_rqs_record_of_a_job_expires_however_it_ended(redis: Redis, broker: Broker) -> None:
    cancelled, lost = submit(broker), submit(broker)
    broker.cancel(cancelled)
    for name in ("a", "b"):
        pop(make_link(redis, name))
        bury(redis, name, max_deaths=1)
    for job_id in (cancelled, lost):
        assert 0 < redis.ttl(f"rq:job:{job_id}") <= TTL_S


def test_a_job_that_an_operator_took_out_of_its_queue_is_mended(
    redis: Redis, broker: Broker
) -> None:
    emptied, popped_away, well, running = (submit(broker) for _ in range(4))
    link = make_link(redis, "w")
    queue = queue_key(f"{MODEL}:normal")
    redis.lrem(queue, 1, running)
    redis.lpush(queue, running)
    assert [p.job_id for p in pop(link)] == [running]
    assert broker.mend() == []
    redis.lrem(queue, 0, popped_away)
    redis.lrem(queue, 0, emptied)
    redis.delete(f"rq:job:{emptied}")  # as `rq empty` does
    assert sorted(broker.mend()) == sorted([emptied, popped_away])
    assert broker.mend() == []
    assert redis.lrange(queue, 0, -1) == [popped_away.encode(), well.encode()]
    last = transcript(redis, emptied).end
    assert last is not None
    assert last.error is not None
    assert last.error.code == "removed"
    assert redis.smembers(OPEN) == {i.encode() for i in (popped_away, well, running)}


def test_a_job_that_runs_on_no_worker_goes_back_to_its_queue(redis: Redis, broker: Broker) -> None:
    job_id = submit(broker)
    pop(make_link(redis, "w"))
    redis.srem(taken_key("w"), job_id)
    assert broker.mend() == [job_id]
    assert record(redis, job_id).status is JobStatus.QUEUED


def test_an_end_behind_tokens_that_redis_has_lost_is_no_end(redis: Redis, broker: Broker) -> None:
    """Else the answer would be completed without its last words."""
    job_id = submit(broker)
    link = make_link(redis, "w")
    pop(link)
    link.exchange([Entry(job_id, 1, token(0))], [job_id], 0)
    assert link.exchange([Entry(job_id, 1, end(tokens=2))], [], 0)[0] == {job_id: "fenced"}
    assert record(redis, job_id).status is JobStatus.QUEUED
    (popped,) = pop(link)
    assert (popped.attempt, popped.count) == (2, 1)


def test_a_job_that_its_worker_does_not_know_goes_back_even_if_that_worker_is_full(
    redis: Redis, broker: Broker
) -> None:
    """Redis forgot its end, say, or its pop came late over a connection that was given up."""
    job_id = submit(broker)
    clock = Clock()
    link = make_link(redis, "w", clock=clock)
    pop(link)
    running = submit(broker)
    pop(link, [job_id])
    assert link.exchange([Entry(running, 1, None)], [running], 0) == ({}, [])
    assert record(redis, job_id).status is JobStatus.RUNNING
    clock.now_s += 5
    link.exchange([Entry(running, 1, None)], [running], 0)
    assert record(redis, job_id).status is JobStatus.QUEUED
    assert record(redis, running).status is JobStatus.RUNNING


def test_a_job_runs_on_where_it_runs_whatever_rqs_cleaners_push(
    redis: Redis, broker: Broker
) -> None:
    """Also right after an outage, when no heartbeat is there."""
    job_id = submit(broker)
    first, second = make_link(redis, "first"), make_link(redis, "second")
    pop(first)
    redis.rpush(queue_key(f"{MODEL}:normal"), job_id, job_id)
    redis.delete("mini-vllm:beat:first")
    assert pop(second) == []
    assert pop(first, [job_id]) == []
    assert record(redis, job_id).worker == "first"


def test_an_overdue_or_cancelled_job_touches_no_worker(redis: Redis, broker: Broker) -> None:
    overdue = submit(broker, timeout_s=0.001)
    parked = submit(broker)
    link = make_link(redis, "w")
    redis.lrem(queue_key(f"{MODEL}:normal"), 1, overdue)
    (popped,) = pop(link)
    broker.cancel(parked)
    link.park(parked, popped.attempt)
    redis.rpush(queue_key(f"{MODEL}:normal"), overdue)
    wait_for(lambda: int(redis.hget(job_key(overdue), "deadline_ms") or 0) < _now_ms(redis), "late")
    assert pop(link, want=4) == []
    ends = [transcript(redis, job_id).end for job_id in (overdue, parked)]
    assert [e.finish_reason for e in ends if e] == [FinishReason.TIMEOUT, FinishReason.CANCELLED]


def _now_ms(redis: Redis) -> int:
    seconds, micros = redis.time()
    return int(seconds * 1000 + micros // 1000)


def test_hundreds_of_overdue_jobs_end_at_once(redis: Redis, broker: Broker) -> None:
    ids = [submit(broker, timeout_s=0.001) for _ in range(250)]
    wait_for(lambda: int(redis.hget(job_key(ids[-1]), "deadline_ms") or 0) < _now_ms(redis), "late")
    assert sorted(broker.expire()) == sorted(ids)


def test_what_is_kept_of_an_ended_job_is_not_its_request(redis: Redis, broker: Broker) -> None:
    cancelled, run = submit(broker, prompt="p" * 5000), submit(broker, prompt="p" * 5000)
    broker.cancel(cancelled)
    link = make_link(redis, "w")
    (popped,) = pop(link)
    finish(link, popped)
    for job_id in (cancelled, run):
        assert len(redis.hget(f"rq:job:{job_id}", "data") or b"") < 100
        GenerateJob.fetch(job_id, redis)  # RQ can still read it
