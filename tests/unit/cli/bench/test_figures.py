"""The figures of the serving benchmark."""

import pytest

from experiments.serving_answers import Answer, Seen
from experiments.serving_figures import Figures, gaps_between_ms, over_rounds, ratios, to_figures


def answer(sent_s: float, *came_s: float, prompt: int = 10, cached: int = 0) -> Answer:
    return Answer(sent_s, list(came_s), "x", prompt, cached, len(came_s), has_usage=True)


def test_figures_are_those_of_requests_that_were_answered() -> None:
    failed = Answer(0, [0.5], error="500: no")
    seen = Seen(0, 4, [answer(0, 1, 2, cached=5), answer(1, 3, 4), failed])
    figures = to_figures(seen)
    assert (figures["requests"], figures["errors"]) == (3, 1)
    assert figures["output_tokens_per_s"] == 1.0
    assert (figures["ttft_p50_s"], figures["ttft_p95_s"]) == (1, 2)
    assert figures["inter_token_p99_ms"] == 1000
    assert figures["hit_rate"] == 0.25
    assert figures["tokens_per_piece"] == 1


def test_nothing_has_no_figures_but_its_errors() -> None:
    figures = to_figures(Seen(0, 1, [Answer(0, error="gone")]))
    assert figures["errors"] == 1
    assert figures["ttft_p50_s"] is figures["hit_rate"] is figures["tokens_per_piece"] is None


def test_a_stream_that_stood_still_has_one_gap_as_long_as_that() -> None:
    streams = [answer(0, 1, 2, 9, 10), answer(0, 1)]
    assert gaps_between_ms(streams, 3, 8) == [7000]
    assert gaps_between_ms(streams, 1.5, 9.5) == [1000, 7000, 1000]


def test_gaps_before_the_long_prompt_are_told_from_those_while_it_is_computed() -> None:
    running = Answer(0, [1, 2, 3, 4, 9, 10, 11])  # the prompt came at 4.5, its first token at 8.9
    seen = Seen(0, 9.5, [answer(4.5, 8.9, 9.5)], [running], quiet_s=2)
    figures = to_figures(seen)
    assert (figures["before_p50_ms"], figures["before_max_ms"]) == (1000, 1000)
    assert (figures["during_p50_ms"], figures["during_max_ms"]) == (5000, 5000)
    assert figures["ttft_p50_s"] == 4.4
    assert figures["output_tokens_per_s"] is None
    assert figures["stream_errors"] == 0


def test_a_stream_that_ended_while_it_was_to_run_is_an_error() -> None:
    ended = answer(0, 1, 2)
    seen = Seen(0, 9, [answer(3, 8)], [ended, Answer(0, [1, 10])], quiet_s=1)
    assert to_figures(seen)["stream_errors"] == 1


def test_rounds_are_told_by_their_median_and_bounds() -> None:
    rounds: list[Figures] = [{"a": 3.0, "b": None}, {"a": 1.0, "b": 7.0}, {"a": 2.0, "b": None}]
    assert over_rounds(rounds) == {
        "a": {"median": 2, "min": 1, "max": 3},
        "b": {"median": 7, "min": 7, "max": 7},
    }


def test_ratios_are_of_the_same_round() -> None:
    ours: list[Figures] = [{"ttft_p95_s": 1.0}, {"ttft_p95_s": 20.0}, {"ttft_p95_s": 3.0}]
    theirs: list[Figures] = [{"ttft_p95_s": 2.0}, {"ttft_p95_s": 40.0}, {"ttft_p95_s": None}]
    assert ratios(ours, theirs)["ttft_p95_s"] == {"median": 0.5, "min": 0.5, "max": 0.5}


@pytest.mark.parametrize("base", [None, 0.0])
def test_there_is_no_ratio_to_nothing(base: float | None) -> None:
    assert ratios([{"ttft_p95_s": 1.0}], [{"ttft_p95_s": base}]) == {}
