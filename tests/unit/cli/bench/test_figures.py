"""The figures of a run, against the definitions of `vllm bench serve`, computed by hand."""

import pytest

from cli.bench.answers import Answer, Seen
from cli.bench.figures import to_figures
from cli.bench.objectives import parse_objective


def answered(sent_s: float, came_s: list[float], output_tokens: int) -> Answer:
    answer = Answer(sent_s, list(came_s), ended_s=came_s[-1], has_usage=True)
    answer.prompt_tokens, answer.output_tokens = 10, output_tokens
    return answer


#: TTFT 1 and 2 s, TPOT 1 and 0.5 s; one answer of one token, which has no TPOT; one that failed.
SEEN = Seen(
    0.0,
    10.0,
    [
        answered(0, [1, 2, 3], 3),
        answered(1, [3, 4], 3),  # its second piece has two tokens
        answered(0, [3], 1),
        Answer(0, ended_s=9, error="x", error_kind="x"),
    ],
)


def test_figures_are_those_of_vllm() -> None:
    figures = to_figures(SEEN)
    assert (figures["completed"], figures["failed"]) == (3, 1)
    assert figures["request_throughput"] == pytest.approx(0.3)
    assert figures["output_throughput"] == pytest.approx(0.7)
    assert figures["total_token_throughput"] == pytest.approx(3.7)
    assert figures["mean_ttft_ms"] == pytest.approx(2000)
    assert figures["mean_tpot_ms"] == pytest.approx(750)
    assert figures["median_itl_ms"] == pytest.approx(1000)
    assert figures["p99_tpot_ms"] == pytest.approx(995)  # as numpy interpolates it
    assert figures["std_tpot_ms"] == pytest.approx(250)  # of all, as numpy has it
    assert figures["median_e2el_ms"] == pytest.approx(3000)
    assert figures["max_concurrent_requests"] == 4


@pytest.mark.parametrize(
    ("slo", "kept"),
    [("ttft:1s", 1), ("ttft:2s", 2), ("tpot:500ms", 2), ("tpot:1s", 3), ("e2e:2.9s", 0)],
)
def test_goodput_counts_who_keeps_all_and_one_token_as_no_tpot(slo: str, kept: int) -> None:
    figures = to_figures(SEEN, parse_objective(slo))
    assert figures["request_goodput"] == pytest.approx(kept / 10)


def test_nothing_answered_has_counts_and_no_latencies() -> None:
    figures = to_figures(Seen(0.0, 1.0, [Answer(0, ended_s=1, error="x")]))
    assert (figures["completed"], figures["failed"]) == (0, 1)
    assert figures["median_ttft_ms"] is None
