import pytest

from worker.pace import MIN_BUDGET_TOKENS, Pace


def test_the_budget_is_what_can_be_computed_while_streams_wait() -> None:
    pace = Pace(stall_s=0.1)
    pace.note(1000, 2.0)
    assert pace.tokens_per_s == pytest.approx(500)
    assert pace.budget_tokens(holds_up=True) == 50
    assert pace.budget_tokens(holds_up=False) == 250
    assert pace.seconds_for(100) == pytest.approx(0.2)


def test_a_slow_machine_still_makes_progress() -> None:
    pace = Pace(stall_s=0.1)
    pace.note(10, 10.0)
    assert pace.budget_tokens(holds_up=True) == MIN_BUDGET_TOKENS


def test_before_anything_is_measured_nothing_is_claimed() -> None:
    pace = Pace(stall_s=0.1)
    pace.note(0, 1.0)
    assert pace.tokens_per_s == 0
    assert pace.seconds_for(1000) == 0
    assert pace.budget_tokens(holds_up=True) > 0


def test_a_large_sample_weighs_more_than_a_small_one() -> None:
    small, large = Pace(stall_s=0.1), Pace(stall_s=0.1)
    for pace, num_tokens in ((small, 8), (large, 800)):
        pace.note(100, 0.1)
        pace.note(num_tokens, num_tokens / 100)
    assert 100 < large.tokens_per_s < small.tokens_per_s < 1000
