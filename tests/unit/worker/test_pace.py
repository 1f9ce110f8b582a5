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


def test_what_a_call_costs_by_itself_is_told_from_its_rows() -> None:
    pace = Pace(stall_s=0.1)
    for num_tokens in (8, 56, 20, 40, 8, 56):
        pace.note(num_tokens, 0.02 + num_tokens * 0.001)
    assert pace.budget_tokens(holds_up=True) == pytest.approx(80, abs=1)
    assert pace.call_tokens == pytest.approx(20, abs=1)


def test_small_chunks_do_not_make_for_smaller_ones() -> None:
    """A rate alone would: 16 tokens in 36 ms are 444 a second, so 44 of a budget, and so on."""
    pace = Pace(stall_s=0.1)
    pace.note(56, 0.076)
    for _ in range(200):
        budget = pace.budget_tokens(holds_up=True)
        for part in (budget, max(2, 64 - budget)):
            pace.note(part, 0.02 + part * 0.001)
    assert pace.budget_tokens(holds_up=True) >= 75


def test_calls_of_one_size_are_taken_as_a_rate() -> None:
    pace = Pace(stall_s=0.1)
    for spent_s in (0.05, 0.06, 0.04, 0.05):
        pace.note(50, spent_s)
    assert pace.call_tokens == 0
    assert pace.budget_tokens(holds_up=True) == pytest.approx(100, abs=6)
