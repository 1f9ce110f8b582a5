from dataclasses import fields

from shared.metrics import Totals
from worker.cache_figures import COUNTED, CacheFigures


def test_what_a_worker_counts_are_totals_that_nobody_else_counts() -> None:
    names = [field.name for field in fields(Totals)]
    assert list(CacheFigures().totals()) == list(COUNTED) == names[-len(COUNTED) :]


def test_a_hit_saves_what_its_tokens_would_have_taken() -> None:
    figures = CacheFigures(prefill_tokens_per_s=200)
    figures.count_look_up(prompt_tokens=120)
    figures.count_hit(hit_tokens=100, restore_s=0.002)
    figures.count_look_up(prompt_tokens=30)
    totals = Totals(**figures.totals())
    assert (totals.cache_queries, totals.cache_hits) == (2, 1)
    assert totals.cache_saved_ms == 500
    assert totals.restore_ms == 2.0
    assert totals.cache_hit_rate == 100 / 150


def test_nothing_is_said_to_be_saved_before_the_rate_was_measured() -> None:
    figures = CacheFigures()
    figures.count_hit(hit_tokens=100, restore_s=0.002)
    assert figures.totals()["cache_saved_ms"] == 0
    assert figures.totals()["cache_hit_tokens"] == 100


def test_parts_of_a_millisecond_add_up() -> None:
    figures = CacheFigures(prefill_tokens_per_s=4000)
    for _ in range(4):
        figures.count_hit(hit_tokens=1, restore_s=0)
    assert figures.totals()["cache_saved_ms"] == 1


def test_rates_of_nothing_are_zero() -> None:
    assert Totals().cache_hit_rate == 0
    assert Totals().restore_ms == 0
