import pytest

from cli.bench.objectives import Objective, parse_objective
from shared.errors import BadRequest


def test_limits_are_read_in_seconds_and_milliseconds() -> None:
    told = parse_objective("ttft:500ms, itl:0.1s")
    assert told == Objective(ttft_s=0.5, itl_s=0.1)


@pytest.mark.parametrize("text", ["", "tft:1s", "ttft", "ttft:1s,ttft:2s", "itl:-1s", "itl:0ms"])
def test_what_is_no_objective_is_refused_by_name(text: str) -> None:
    with pytest.raises(BadRequest, match="--slo"):
        parse_objective(text)
