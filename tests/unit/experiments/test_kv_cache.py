"""The KV cache: slowdown, and whether tokens stay the same."""

import pytest

from experiments.frame.samples import Samples
from experiments.frame.study import TooLittle
from experiments.kv_cache.judging import explain, headline, judge, tabulate, takeaway
from tests.unit.experiments.recorded import figures_of, recorded

TOKENS = list(range(50))


def evenly(total_s: float, tokens: int) -> list[float]:
    return [total_s * (number + 1) / tokens for number in range(tokens)]


def made(recomputed_tokens: list[int], *, is_exact_expected: bool) -> Samples:
    """The reference: TinyLlama 1.1B in 4 bits on four cores, 50 tokens."""
    samples = Samples(
        facts={
            "lengths": [10, 50],
            "prompt_tokens": 8,
            "is_exact_expected": is_exact_expected,
            "format": "llama 1B Q4_K - Medium",
        }
    )
    for way, total_s, tokens in (("cached", 2.5, TOKENS), ("recomputed", 44.6, recomputed_tokens)):
        token_s = evenly(total_s, 50)
        values = {"token_s": token_s, "tokens": tokens, "total_s": total_s}
        samples.add({"way": way, "chunk": 56}, 1, values)
    return samples


def test_the_reference_is_eighteen_times_slower_without_the_cache() -> None:
    figures = judge(made(TOKENS, is_exact_expected=True), {})
    last = figures["rows"][-1]
    assert last["tokens"] == 50
    assert round(last["slowdown"]) == 18
    assert last["cached_tokens_per_s"] == pytest.approx(20)
    assert "50 tokens take 18 times as long: 44.6 s instead of 2.5 s" in takeaway(figures)
    assert figures["is_exact"]
    assert "problem" not in figures
    assert "identical in both" in explain(figures, {})


def test_a_difference_is_a_problem_where_tokens_must_not_depend_on_the_cache() -> None:
    other = [*TOKENS[:31], -1, *TOKENS[32:]]
    figures = judge(made(other, is_exact_expected=True), {})
    assert figures["first_differences"] == {"56": 31}
    assert "56 rows: token 31" in figures["problem"]


def test_a_difference_is_told_where_kernels_round_otherwise() -> None:
    figures = judge(made([-1, *TOKENS[1:]], is_exact_expected=False), {})
    assert "problem" not in figures
    assert "chunks of 56 rows from token 0 on" in explain(figures, {})


def test_lengths_that_were_not_reached_are_left_out() -> None:
    samples = made(TOKENS, is_exact_expected=True)
    samples.facts["lengths"] = [10, 50, 400]
    assert [row["tokens"] for row in judge(samples, {})["rows"]] == [10, 50]


def test_one_way_alone_says_nothing() -> None:
    samples = made(TOKENS, is_exact_expected=True)
    samples.kept = samples.of(way="cached")
    with pytest.raises(TooLittle):
        judge(samples, {})


def test_checks_of_other_chunks_are_no_timings() -> None:
    samples, card = recorded("kv-cache")
    figures = judge(samples, card)
    assert set(figures["first_differences"]) == {"56", "2", "7", "24"}
    assert figures["rows"][-1]["recomputed_s"]["rounds"] == 1
    assert figures["is_exact"]


def test_the_slowdown_of_the_recorded_run_grows_with_the_length() -> None:
    figures = figures_of("kv-cache")
    slowdowns = [row["slowdown"] for row in figures["rows"]]
    assert slowdowns == sorted(slowdowns)
    table = tabulate(figures)
    assert [len(row) for row in table.rows] == [len(table.columns)] * len(slowdowns)
    assert headline(figures)["slowdown at 24 tokens"] == slowdowns[-1]


def test_the_last_token_that_is_told_is_that_of_the_longest_length() -> None:
    """Here the recompute was stopped after 30 tokens, each of which took longer than the one before."""
    samples = made(TOKENS, is_exact_expected=True)
    (recomputed,) = samples.of(way="recomputed")
    recomputed.values["token_s"] = [0.1 * n * n for n in range(1, 31)]
    words = explain(judge(samples, {}), {})
    assert "1900 ms for the last (17 tokens each time)" in words


def test_one_length_shows_no_growth() -> None:
    samples = made(TOKENS, is_exact_expected=True)
    samples.facts["lengths"] = [50]
    assert "slowdown" not in explain(judge(samples, {}), {})


def test_a_slowdown_that_does_not_grow_is_not_said_to() -> None:
    words = explain(judge(made(TOKENS, is_exact_expected=True), {}), {})
    assert "The slowdown is 18 at 10 tokens, 18 at 50." in words
