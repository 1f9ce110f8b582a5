from cli.policy import (
    MAX_GAP_S,
    Patience,
    RestartPolicy,
    counts_as_death,
)
from shared.exit_codes import EXIT_CONFIG, EXIT_GIVEN_UP


def test_a_child_that_dies_is_started_again_after_a_growing_pause() -> None:
    policy = RestartPolicy()
    policy.started(0.0)
    policy.ready()
    pauses = []
    for _ in range(7):
        assert policy.died(-9, 10.0)
        pauses.append(policy.next_start_s - 10.0)
    assert pauses == [0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


def test_five_deaths_before_it_was_ever_ready_are_enough() -> None:
    policy = RestartPolicy()
    assert [policy.died(1, float(i)) for i in range(5)] == [True, True, True, True, False]


def test_a_child_that_was_ready_once_is_never_given_up() -> None:
    policy = RestartPolicy()
    policy.ready()
    assert all(policy.died(EXIT_CONFIG, float(i)) for i in range(50))


def test_a_child_that_cannot_work_as_it_is_set_up_is_given_up_at_once() -> None:
    assert not RestartPolicy().died(EXIT_CONFIG, 0.0)


def test_a_long_life_wipes_the_slate() -> None:
    policy = RestartPolicy()
    policy.started(0.0)
    policy.ready()
    for _ in range(6):
        policy.died(1, 1.0)
    policy.started(100.0)
    policy.died(1, 170.0)
    assert policy.next_start_s == 170.5


def looks(patience: Patience, *seen: tuple[float, bool]) -> list[bool]:
    return [patience.is_out(is_so, now_s) for now_s, is_so in seen]


def test_what_lasts_longer_than_the_limit_wears_patience_out() -> None:
    seen = [(float(i), True) for i in range(100, 106)]
    assert looks(Patience(4), *seen) == [False, False, False, False, False, True]


def test_a_break_gives_patience_back() -> None:
    patience = Patience(2)
    seen = [(0.0, True), (1.0, True), (2.0, False), (3.0, True), (5.0, True), (5.1, True)]
    assert looks(patience, *seen) == [False, False, False, False, False, True]


def test_patience_begins_anew_after_it_ran_out_and_when_told() -> None:
    patience = Patience(1)
    assert looks(patience, (0.0, True), (1.5, True), (2.0, True)) == [False, True, False]
    patience.begin_anew()
    assert looks(patience, (3.5, True), (4.5, True), (4.6, True)) == [False, False, True]


def test_an_observer_who_was_away_does_not_count_the_time() -> None:
    away_s = MAX_GAP_S + 0.1
    patience = Patience(MAX_GAP_S + 1)
    assert looks(patience, (0.0, True), (away_s, True), (2 * away_s, True)) == [False] * 3


def test_what_an_operator_asked_for_counts_against_no_job() -> None:
    assert counts_as_death(-9, False)
    assert counts_as_death(71, False)
    assert not counts_as_death(0, False)
    assert not counts_as_death(EXIT_GIVEN_UP, False)
    assert not counts_as_death(-9, True)
