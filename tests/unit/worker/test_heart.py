from tests.factories import Clock
from worker.heart import Pulse


def test_a_loop_that_stands_still_is_stalled_after_the_limit() -> None:
    clock = Clock()
    pulse = Pulse(60, clock)
    pulse.touch()
    clock.now_s += 60
    assert not pulse.is_stalled
    clock.now_s += 1
    assert pulse.is_stalled


def test_loading_a_model_is_not_a_stall() -> None:
    clock = Clock()
    pulse = Pulse(60, clock)
    clock.now_s += 1000
    assert not pulse.is_stalled


def test_a_slow_machine_gets_five_times_its_longest_step() -> None:
    clock = Clock()
    pulse = Pulse(60, clock)
    pulse.touch()
    clock.now_s += 30
    pulse.step_done()
    clock.now_s += 149
    assert not pulse.is_stalled
    clock.now_s += 2
    assert pulse.is_stalled
