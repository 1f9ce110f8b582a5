"""The front of what nothing else beats in everything."""

from cli.pareto import front


def test_what_is_beaten_in_one_thing_and_better_in_none_is_not_in_it() -> None:
    assert front([(10, 1), (5, 5), (4, 4), (5, 4)]) == [0, 1]


def test_equal_points_are_all_in_it() -> None:
    assert front([(1, 1), (1, 1)]) == [0, 1]


def test_a_third_thing_keeps_what_two_would_not() -> None:
    assert front([(10, 10, 1), (5, 5, 9)]) == [0, 1]
    assert front([]) == []
