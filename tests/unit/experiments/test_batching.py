"""Batching: the knee, measured and by the roofline."""

import pytest

from experiments.batching.judging import explain, headline, judge, step_line, tabulate
from experiments.frame.samples import Samples
from experiments.frame.study import TooLittle
from tests.unit.experiments.recorded import figures_of, recorded

WORK = {
    "layer_parameters": 100_000_000,
    "output_parameters": 0,
    "attention_dims": 0,
    "weight_bytes": 100_000_000,
    "kv_bytes_per_token": 0,
}


def made(step_ms: dict[int, float], prompt_tokens_per_s: float) -> Samples:
    samples = Samples(facts={"position": 64, "threads": 1, "work": WORK, "pads": False})
    values = {"prompt_tokens_per_s": prompt_tokens_per_s, "tokens": 224}
    samples.add({"kind": "prompt"}, 1, values)
    for rows, ms in step_ms.items():
        values = {"step_ms": ms, "tokens_per_s": rows / ms * 1000}
        samples.add({"kind": "decode", "sequences": rows}, 1, values)
    return samples


def test_a_step_of_a_fixed_part_and_rows_has_its_knee_where_both_are_the_same() -> None:
    line = step_line([(rows, 12 + 3 * rows) for rows in (1, 2, 4, 8, 16)])
    assert line is not None
    assert line["knee"] == pytest.approx(4)
    assert line["r2"] == pytest.approx(1)


def test_rows_that_cost_nothing_and_few_points_have_no_measured_knee() -> None:
    assert step_line([(1, 10.0), (2, 10.0), (4, 10.0), (8, 10.0)]) is None
    assert step_line([(1, 10.0), (2, 11.0), (4, 12.0)]) is None


def test_the_roofline_turns_where_computing_takes_as_long_as_reading() -> None:
    # 10 ms to read the weights; a prompt token, 0.2 GFLOP, takes 2 ms: 5 rows.
    figures = judge(made({1: 12, 4: 13, 16: 40}, 500), {"read_gb_per_s": {"1": 10}})
    assert figures["roofline_knee"] == pytest.approx(5)
    assert [row["bound_ms"] for row in figures["rows"]] == pytest.approx([10, 10, 32])
    assert [row[5] for row in tabulate(figures).rows] == ["memory", "memory", "computing"]
    assert "its knee at 5.0 sequences" in explain(figures, {})


def test_no_step_is_faster_than_its_bound() -> None:
    # A batch that computes faster than the prompt did is what the kernels reach, then.
    figures = judge(made({1: 12, 16: 20}, 100), {"read_gb_per_s": {"1": 10}})
    assert all(row["bound_ms"] <= row["step_ms"]["median"] for row in figures["rows"])


def test_one_number_of_sequences_is_too_little() -> None:
    with pytest.raises(TooLittle):
        judge(made({1: 12}, 100), {"read_gb_per_s": {"1": 10}})


def test_the_recorded_run_is_bound_by_computing() -> None:
    figures = figures_of("batching")
    card = recorded("batching")[1]
    assert figures["roofline_knee"] < 1.5
    assert "already one is bound by computing" in explain(figures, card)
    assert headline(figures)["tokens/s of 16"] > headline(figures)["tokens/s of 1"]
