"""High before normal before low, and nobody starves."""

import pytest
from redis import Redis

from shared.broker import Broker
from tests.links import make_broker, make_link, pop, serve, submit


@pytest.fixture
def broker(flushed: Redis) -> Broker:
    serve(flushed)
    return make_broker(flushed)


def admissions(redis: Redis, broker: Broker, patience: int, num: int) -> list[str]:
    """Who is taken, while a high and a normal job always wait."""
    link = make_link(redis, "w", patience=patience)
    names = {submit(broker, priority="low"): "low"}
    taken = []
    for _ in range(num):
        for priority in ("high", "normal"):
            names[submit(broker, priority=priority)] = priority
        (popped,) = pop(link)
        taken.append(names[popped.job_id])
    return taken


def test_the_oldest_low_job_starts_within_a_bounded_number_of_admissions(
    flushed: Redis, broker: Broker
) -> None:
    taken = admissions(flushed, broker, 4, 12)
    assert taken.index("low") <= 5
    assert taken[:4] == ["high"] * 4
    assert taken.count("normal") == 2
    assert taken.count("high") == 9


def test_what_is_not_overtaken_does_not_lose_its_patience(flushed: Redis, broker: Broker) -> None:
    link = make_link(flushed, "w", patience=2)
    for _ in range(6):
        submit(broker, priority="high")
    for _ in range(6):
        pop(link)
    low, high = submit(broker, priority="low"), submit(broker, priority="high")
    assert [pop(link)[0].job_id for _ in range(2)] == [high, low]
