"""When requests of an open loop are sent, whatever becomes of those before them. Pure."""

import random
from itertools import accumulate


def arrival_times_s(
    rng: random.Random, count: int, rate_per_s: float, burstiness: float = 1.0
) -> list[float]:
    """As vLLM draws them: gamma distributed pauses of shape ``burstiness`` (1: a Poisson process; less
    comes in bursts, more is more regular), stretched so that the rate is exactly the one asked for."""
    pauses_s = [rng.gammavariate(burstiness, 1 / (rate_per_s * burstiness)) for _ in range(count)]
    times_s = list(accumulate(pauses_s))
    stretch = count / rate_per_s / times_s[-1] if times_s and times_s[-1] else 0.0
    return [time_s * stretch for time_s in times_s]
