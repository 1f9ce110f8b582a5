from cli.policy import EXIT_CONFIG, RestartPolicy


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
