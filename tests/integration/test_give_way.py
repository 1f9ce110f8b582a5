"""A worker whose slots are full takes jobs for which its own of low priority would give way."""

from redis import Redis

from tests.links import make_broker, make_link, serve, submit


def test_jobs_of_higher_priority_are_taken_beyond_the_slots(flushed: Redis) -> None:
    serve(flushed)
    broker, link = make_broker(flushed), make_link(flushed, "worker-0")
    running = [submit(broker, priority="low") for _ in range(2)]
    assert [popped.job_id for popped in link.exchange([], [], 2)[1]] == running
    waiting = [submit(broker, priority=name) for name in ("low", "normal", "high", "normal")]
    _, taken = link.exchange([], running, 0, 2)
    assert [popped.job_id for popped in taken] == [waiting[2], waiting[1]]


def test_nothing_is_taken_where_nothing_gives_way_or_only_low_jobs_wait(flushed: Redis) -> None:
    serve(flushed)
    broker, link = make_broker(flushed), make_link(flushed, "worker-0")
    submit(broker, priority="low")
    assert link.exchange([], [], 0, 2)[1] == []
    submit(broker, priority="high")
    assert link.exchange([], [], 0, 0)[1] == []


def test_a_job_that_gave_way_is_the_next_of_its_queue(flushed: Redis) -> None:
    serve(flushed)
    broker, link = make_broker(flushed), make_link(flushed, "worker-0")
    first = submit(broker, priority="low")
    [popped] = link.exchange([], [], 1)[1]
    submit(broker, priority="low")
    link.park(first, popped.attempt)
    [again] = link.exchange([], [], 1)[1]
    assert (again.job_id, again.attempt) == (first, 2)
    assert again.owner == ""
