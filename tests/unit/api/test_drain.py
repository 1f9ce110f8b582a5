import pytest

from api.drain import Drain
from shared.errors import ShuttingDown


def test_nothing_is_over_before_the_end_was_asked_for() -> None:
    drain = Drain(30)
    drain.check_admission()
    assert not drain.is_requested
    assert not drain.is_over(0, 1e9)


def test_from_the_request_on_nothing_is_admitted_and_followers_have_their_time() -> None:
    drain = Drain(30)
    drain.request(100)
    with pytest.raises(ShuttingDown):
        drain.check_admission()
    assert not drain.is_over(1, 129.9)
    assert drain.is_over(1, 130)


def test_with_nobody_following_it_is_over_at_once() -> None:
    drain = Drain(30)
    drain.request(100)
    assert drain.is_over(0, 100)


def test_a_second_request_waits_for_nobody() -> None:
    drain = Drain(30)
    drain.request(100)
    drain.request(101)
    assert drain.is_over(5, 101)


def test_a_gateway_whose_pool_drains_admits_nothing_and_stays() -> None:
    drain = Drain(30)
    drain.stop_admitting()
    with pytest.raises(ShuttingDown):
        drain.check_admission()
    assert not drain.is_over(0, 1e9)
