"""Cost against length: from clock readings to fits."""

import pytest

from experiments.cache_complexity.curves import prompt_times, recomputed_curve
from experiments.cache_complexity.judging import attention_share, explain, judge, tabulate
from experiments.frame.samples import Samples
from experiments.frame.study import TooLittle
from tests.unit.experiments.recorded import figures_of

WORK = {
    "layer_parameters": 10**8,
    "output_parameters": 10**7,
    "attention_dims": 10**4,
    "weight_bytes": 10**8,
    "kv_bytes_per_token": 20_000,
}


def made(
    *,
    token_s: float,
    attention_s: float,
    prompt_token_s: float,
    most: int = 560,
    padded_from: int | None = None,
) -> Samples:
    """A machine that keeps to theory: a cached token costs ``token_s`` and ``attention_s`` for each token
    before it, and from ``padded_from`` on the first again; a prompt's token the same for its attention,
    and less for itself."""
    samples = Samples(facts={"prompt_tokens": 16, "max_tokens": most, "work": WORK})
    samples.facts["padded_from"] = padded_from
    at_s, now_s = [], 0.0
    for number in range(most):
        now_s += token_s + attention_s * (16 + number)
        now_s += token_s if padded_from is not None and number >= padded_from else 0
        at_s.append(now_s)
    samples.add({"way": "cached", "chunk": 56}, 1, {"positions": [], "at_s": at_s})
    borders = list(range(56, 16 + most + 1, 56))
    prompt_s = [prompt_token_s * n + attention_s * n * n / 2 for n in borders]
    samples.add({"way": "prompt", "chunk": 56}, 1, {"positions": borders, "at_s": prompt_s})
    return samples


def test_prompts_between_borders_are_straight_and_summed() -> None:
    curve = recomputed_curve([0, 100, 200], [0.0, 1.0, 3.0], 50, [1, 51, 101])
    assert curve.token_ms == pytest.approx((500, 1000, 2000))
    assert curve.total_s[0] == pytest.approx(0.5)
    assert curve.total_s[1] == pytest.approx(sum(0.5 + n * 0.01 for n in range(51)))


def test_lengths_beyond_what_was_read_are_left_out() -> None:
    assert recomputed_curve([0, 100], [0.0, 1.0], 50, [10, 51, 52]).lengths == (10, 51)
    assert recomputed_curve([0, 100], [0.0, 1.0], 99, [9]).lengths == ()


def test_rounds_of_a_prompt_are_middled_border_by_border() -> None:
    samples = made(token_s=0.01, attention_s=0, prompt_token_s=0.01, most=112)
    for factor in (2, 3):
        values = {"positions": [56, 112], "at_s": [0.56 * factor, 1.12 * factor]}
        samples.add({"way": "prompt", "chunk": 56}, factor, values)
    assert prompt_times(samples, 56)[1] == pytest.approx([0, 1.12, 2.24])


def test_without_attention_the_cached_cost_is_a_line_and_the_other_a_square() -> None:
    figures = judge(made(token_s=0.02, attention_s=0, prompt_token_s=0.005), {})
    cached, recomputed = figures["cached"], figures["recomputed"]
    assert cached["fit"]["b"] == pytest.approx(0.02, rel=0.01)
    assert cached["fit"]["c"] == pytest.approx(0, abs=1e-9)
    assert recomputed["fit"]["c"] == pytest.approx(0.0025, rel=0.01)
    assert cached["late_exponent"] == pytest.approx(1, abs=0.01)
    assert recomputed["late_exponent"] == pytest.approx(2, abs=0.1)
    assert recomputed["cube_share"] == pytest.approx(0, abs=0.01)
    assert attention_share(figures) == pytest.approx(0, abs=0.01)
    assert figures["batching"] == pytest.approx(4, rel=0.05)


def test_attention_bends_both() -> None:
    figures = judge(made(token_s=0.01, attention_s=2e-5, prompt_token_s=0.005), {})
    assert figures["cached"]["fit"]["c"] == pytest.approx(1e-5, rel=0.05)
    assert figures["recomputed"]["cube_share"] > 0.1
    assert 0.4 < attention_share(figures) < 0.6


def test_a_row_computed_twice_is_not_taken_for_attention() -> None:
    figures = judge(
        made(token_s=0.01, attention_s=0, prompt_token_s=0.005, padded_from=200, most=1120), {}
    )
    assert attention_share(figures) == pytest.approx(0, abs=0.01)
    assert "From token 200 of the answer" in explain(figures, {})
    assert "thrown away" not in explain(
        judge(made(token_s=0.01, attention_s=0, prompt_token_s=0.005), {}), {}
    )


def test_work_is_counted_in_tokens_and_operations() -> None:
    figures = judge(made(token_s=0.01, attention_s=0, prompt_token_s=0.005), {})
    length, work = figures["lengths"][-1], figures["work"]
    assert work["cached"][-1]["tokens"] == 16 + length - 1
    assert work["recomputed"][-1]["tokens"] == sum(range(16, 16 + length))
    least = 2 * 1e8 * (16 + length - 1) / 1e9
    assert work["cached"][-1]["gflop"] > least
    assert work["recomputed"][-1]["gflop"] > work["cached"][-1]["gflop"] * 50


def test_a_short_run_is_too_little() -> None:
    samples = made(token_s=0.01, attention_s=0, prompt_token_s=0.005)
    samples.kept = samples.of(way="cached")
    with pytest.raises(TooLittle, match="both"):
        judge(samples, {})
    with pytest.raises(TooLittle, match="few lengths"):
        judge(made(token_s=0.01, attention_s=0, prompt_token_s=0.005, most=112), {})


def test_the_recorded_run_is_nearly_a_line_with_the_cache_and_a_square_without() -> None:
    figures = figures_of("cache-complexity")
    assert 0.95 < figures["cached"]["late_exponent"] < 1.2
    assert 1.9 < figures["recomputed"]["late_exponent"] < 2.3
    assert figures["cached"]["fit"]["r2"] > 0.999
    assert "R²" in explain(figures, {})
    table = tabulate(figures)
    assert all(len(row) == len(table.columns) for row in table.rows)
