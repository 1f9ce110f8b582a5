import random
from itertools import pairwise
from statistics import pstdev

import pytest

from cli.bench.arrivals import arrival_times_s


@pytest.mark.parametrize("burstiness", [0.3, 1.0, 5.0])
def test_arrivals_keep_the_rate_in_order(burstiness: float) -> None:
    times_s = arrival_times_s(random.Random(1), 200, 4.0, burstiness)
    assert times_s == sorted(times_s)
    assert times_s[-1] == pytest.approx(200 / 4.0)


def test_a_small_burstiness_makes_uneven_pauses() -> None:
    def unevenness(burstiness: float) -> float:
        times_s = arrival_times_s(random.Random(2), 500, 4.0, burstiness)
        return pstdev([b - a for a, b in pairwise(times_s)])

    assert unevenness(0.3) > unevenness(1.0) > unevenness(5.0)
