from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cli.bench.answers import Answer, Seen
from cli.bench.timeline import to_timeline


def _seen(came_s: list[float], ended_s: float) -> Seen:
    answer = Answer(0.0, came_s=sorted(came_s), began_s=0.0, ended_s=ended_s, has_usage=True)
    return Seen(0.0, ended_s, answers=[answer])


@given(st.lists(st.floats(0.0, 5.0), max_size=40), st.floats(5.0, 20.0))
@example([0.1, 0.14], 0.145)
@example([0.0], 0.1)
def test_no_token_is_lost_nor_counted_twice(came_s: list[float], ended_s: float) -> None:
    line = to_timeline(_seen(came_s, ended_s))
    starts_s = [0.0]
    for middle_s in line.times_s:
        starts_s.append(2 * middle_s - starts_s[-1])
    widths_s = [b - a for a, b in pairwise(starts_s)]
    total = sum(w * rate for w, rate in zip(widths_s, line.tokens_per_s, strict=True))
    assert total == pytest.approx(len(came_s), abs=1e-6)
    assert starts_s[-1] == pytest.approx(max([ended_s, *came_s]))


def test_a_sliver_at_the_end_belongs_to_the_bucket_before() -> None:
    line = to_timeline(_seen([0.01, 0.05, 0.09, 0.11], 0.12))
    assert line.times_s == pytest.approx((0.06,))
    assert line.tokens_per_s == pytest.approx((4 / 0.12,))


def test_steady_tokens_give_a_steady_rate() -> None:
    line = to_timeline(_seen([i / 10 + 0.05 for i in range(100)], 10.0))
    assert len(line.times_s) == 80
    assert sum(line.tokens_per_s) / 80 == pytest.approx(10.0)


def test_waiting_is_told_as_a_share_of_the_requests_time() -> None:
    line = to_timeline(_seen([3.0, 4.0], 4.0))
    assert line.wait_share == pytest.approx(0.75)
