"""Layouts: which gives most, at rest and beside a neighbour."""

import pytest

from experiments.frame.samples import Samples
from experiments.frame.study import TooLittle
from experiments.layouts.judging import best, explain, headline, judge, tabulate
from tests.unit.experiments.recorded import figures_of

FACTS = {"clients": 16, "cores": 4, "prompt_tokens": 32, "output_tokens": 32}


def made(speeds: dict[tuple[str, str], float | None]) -> Samples:
    samples = Samples(facts=dict(FACTS))
    for (layout, kind), speed in speeds.items():
        values = {} if speed is None else {"output_tokens_per_s": speed, "itl_p99_ms": 50.0}
        samples.add({"layout": layout, "neighbour": kind}, 1, values)
    return samples


def test_each_kind_of_machine_has_its_best() -> None:
    figures = judge(
        made(
            {
                ("1 x 4", "none"): 120,
                ("4 x 1", "none"): 100,
                ("1 x 4", "busy"): 10,
                ("4 x 1", "busy"): 85,
            }
        ),
        {},
    )
    assert (figures["best_none"], figures["best_busy"]) == ("1 x 4", "4 x 1")
    assert [row["layout"] for row in figures["rows"]] == ["4 x 1", "1 x 4"]
    words = explain(figures, {})
    assert "85 % of 4 x 1, 8 % of 1 x 4" in words
    assert "would leave 88 %" in words
    assert headline(figures)["1 x 4, neighbour, tokens/s"] == 10


def test_a_trial_that_failed_is_left_out() -> None:
    figures = judge(made({("4 x 1", "none"): 100, ("1 x 4", "none"): None}), {})
    assert [row["layout"] for row in figures["rows"]] == ["4 x 1"]
    assert best(figures["rows"], "busy") is None
    assert len(tabulate(figures).rows) == 1
    with pytest.raises(TooLittle):
        judge(made({("4 x 1", "none"): None}), {})


def test_the_recorded_run_prefers_small_workers_beside_a_neighbour() -> None:
    assert figures_of("layouts")["best_busy"] == "2 x 1"


def test_one_that_gave_no_token_is_left_out() -> None:
    speeds = {("1 x 4", "none"): 120.0, ("1 x 4", "busy"): 0.0, ("4 x 1", "none"): 0.0}
    figures = judge(made(dict(speeds)), {})
    assert [row["layout"] for row in figures["rows"]] == ["1 x 4"]
    assert "leaves" not in explain(figures, {})
