"""Threads: the best number, a neighbour, how memory-bound decoding is."""

import pytest

from experiments.frame.samples import Samples
from experiments.frame.study import TooLittle
from experiments.threads.judging import best, explain, headline, judge, takeaway
from tests.unit.experiments.recorded import figures_of, recorded

#: Decode speed of TinyLlama 1.1B in 4 bits on a machine with four cores, by threads.
REFERENCE = [(2, 28.6), (3, 27.0), (4, 25.8)]


def test_the_reference_decodes_best_with_two_threads() -> None:
    assert best(REFERENCE) == 2


def made(cores: int, speeds: list[tuple[int, float]], kind: str = "none") -> Samples:
    samples = Samples(facts={"cores": cores})
    for threads, speed in speeds:
        values = {
            "decode_tokens_per_s": speed,
            "prompt_tokens_per_s": speed * 2,
            "step_ms": [1000 / speed],
        }
        samples.add({"threads": threads, "neighbour": kind}, 1, values)
    return samples


def test_the_reference_is_judged_without_a_bandwidth() -> None:
    figures = judge(made(4, REFERENCE), {})
    assert figures["best_decode_threads"] == 2
    assert takeaway(figures) == "Decode is fastest with 2 threads on 4 cores: 29 tokens/s"
    assert headline(figures)["decode, tokens/s"] == pytest.approx(28.6)
    assert "1.43 times one" not in explain(figures, {})


def test_what_was_measured_beside_a_neighbour_only_says_nothing() -> None:
    with pytest.raises(TooLittle):
        judge(made(4, REFERENCE, kind="busy"), {})


def test_bandwidth_is_that_of_as_many_cores_as_run() -> None:
    samples, card = recorded("threads")
    rows = {row["threads"]: row for row in judge(samples, card)["rows"]}
    assert rows[1]["bandwidth_percent"] == pytest.approx(
        rows[1]["effective_gb_per_s"] / card["read_gb_per_s"]["1"] * 100
    )
    # Four threads have two cores.
    assert rows[4]["bandwidth_percent"] == pytest.approx(
        rows[4]["effective_gb_per_s"] / card["read_gb_per_s"]["2"] * 100
    )


def test_the_recorded_run_collapses_beside_a_neighbour_and_says_why() -> None:
    figures = figures_of("threads")
    card = recorded("threads")[1]
    words = explain(figures, card)
    assert figures["best_decode_threads"] == 1
    assert "Several collapse" in words
    assert "keep more of less" in words
    assert "4 threads on 2 cores" in words


def test_more_threads_than_cores_alone_are_judged_and_told() -> None:
    figures = judge(made(2, [(3, 20.0), (4, 10.0)]), {})
    assert "Decode is fastest with 3 threads on 2 cores" in explain(figures, {})


def test_a_slowdown_is_explained_only_where_there_is_one() -> None:
    words = explain(judge(made(2, [(2, 20.0), (4, 20.0)]), {}), {})
    assert "4 threads on 2 cores decode at 100 % of the speed of 2. " in words
    assert "barrier" not in words
