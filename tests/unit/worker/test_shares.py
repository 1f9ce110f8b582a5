from hypothesis import example, given
from hypothesis import strategies as st

from worker.shares import Seeker, Settling, share_of


def seeker(at_most: int = 64, cores: range = range(64), threads: int = 0) -> Seeker:
    return Seeker(threads, at_most, tuple(cores))


def take_in_turn(num_cores: int, seekers: list[Seeker]) -> list[int]:
    """What each gets, one after the other, from cores that all of them may take."""
    free, shares = set(range(num_cores)), []
    for number, me in enumerate(seekers):
        share = share_of(me, seekers[number + 1 :], free) if free else 0
        shares.append(share)
        free -= set(sorted(free)[:share])
    return shares


def test_five_cores_for_two_are_two_and_three() -> None:
    assert take_in_turn(5, [seeker(), seeker()]) == [2, 3]


@given(st.integers(1, 64), st.integers(1, 70))
def test_all_cores_are_shared_out_evenly(num_cores: int, num_workers: int) -> None:
    shares = take_in_turn(num_cores, [seeker()] * num_workers)
    assert sum(shares) == num_cores
    if num_workers <= num_cores:
        assert max(shares) - min(shares) <= 1
    else:
        assert sorted(set(shares)) == [0, 1], "the surplus waits"


@example(15, [1, 1, 4, 5, 4])
@given(st.integers(1, 64), st.lists(st.integers(1, 20), min_size=1, max_size=8))
def test_nobody_gets_more_than_it_can_use_and_no_core_is_left_over(
    num_cores: int, limits: list[int]
) -> None:
    shares = take_in_turn(num_cores, [seeker(limit) for limit in limits])
    assert all(share <= limit for share, limit in zip(shares, limits, strict=True))
    assert sum(shares) == min(num_cores, sum(limits))


def test_what_others_were_told_to_take_is_theirs() -> None:
    assert share_of(seeker(), [seeker(threads=3), seeker()], range(8)) == 2


def test_one_core_is_the_least() -> None:
    assert share_of(seeker(), [seeker(threads=4)], range(4)) == 1


def test_no_core_waits_for_one_who_wants_more_than_are_free() -> None:
    assert share_of(seeker(), [seeker(threads=9)], range(4)) == 4


def test_who_may_take_other_cores_only_does_not_count() -> None:
    assert share_of(seeker(), [seeker(cores=range(8, 16))], range(8)) == 8


def test_it_settles_a_second_after_the_last_has_come() -> None:
    settling = Settling(0)
    assert not settling.is_over({"a"}, False, 10.0)
    assert not settling.is_over({"a", "b"}, False, 10.9)
    assert not settling.is_over({"a", "b"}, False, 11.8)
    assert settling.is_over({"a"}, False, 11.9), "that b has gone is no news"


def test_it_waits_for_those_who_are_expected_but_not_for_ever() -> None:
    settling = Settling(3)
    assert not settling.is_over({"a", "b"}, False, 10.0)
    assert not settling.is_over({"a", "b"}, False, 24.9)
    assert settling.is_over({"a", "b"}, False, 25.0)


def test_the_expected_end_the_wait_when_they_are_there() -> None:
    settling = Settling(2)
    assert not settling.is_over({"a"}, False, 10.0)
    assert not settling.is_over({"a", "b"}, False, 12.0)
    assert settling.is_over({"a", "b"}, False, 13.0)


def test_where_cores_are_held_nobody_is_waited_for() -> None:
    assert Settling(8).is_over({"a"}, True, 10.0)
