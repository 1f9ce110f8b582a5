"""From clock readings to curves: the cost of an answer by its length, with the cache and without. Pure."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experiments.frame.samples import Samples

#: Tokens before and after one whose times are taken with its own.
LOCAL_REACH = 16


@dataclass(frozen=True, slots=True)
class Curve:
    """Of each length of an answer: what all of it cost, in seconds, and its last token alone, "
    "in ms."""

    lengths: tuple[int, ...]
    total_s: tuple[float, ...]
    token_ms: tuple[float, ...]


def prompt_times(samples: Samples, chunk: int) -> tuple[list[int], list[float]]:
    """Tokens, and the median time of a prompt of so many; from the origin on."""
    readings = samples.of(way="prompt", chunk=chunk)
    borders: list[list[int]] = [s.values["positions"] for s in readings]
    shortest = min(borders, key=len, default=[])
    times = [
        statistics.median(s.values["at_s"][number] for s in readings)
        for number in range(len(shortest))
    ]
    return [0, *shortest], [0.0, *times]


def cached_curve(samples: Samples, at: Sequence[int]) -> Curve:
    readings = [s.values["at_s"] for s in samples.of(way="cached")]
    known = min((len(at_s) for at_s in readings), default=0)
    middle = [statistics.median(at_s[n] for at_s in readings) for n in range(known)]
    lengths = [length for length in at if length <= known]
    return Curve(
        tuple(lengths),
        tuple(middle[length - 1] for length in lengths),
        tuple(_local_ms(middle, length) for length in lengths),
    )


def _local_ms(at_s: Sequence[float], length: int, reach: int = LOCAL_REACH) -> float:
    """Around this token: single ones are told apart by whatever else the machine did."""
    gaps = [
        (at_s[n] - at_s[n - 1]) * 1000
        for n in range(max(1, length - reach), min(len(at_s), length + reach))
    ]
    return statistics.median(gaps)


def recomputed_curve(
    tokens: Sequence[int], times_s: Sequence[float], prompt_tokens: int, at: Sequence[int]
) -> Curve:
    """Token n of the answer costs a prompt of all before it; between borders of chunks the time is taken
    as straight."""
    most = tokens[-1] - prompt_tokens + 1
    lengths = [length for length in at if length <= most]
    if not lengths:
        return Curve((), (), ())
    known = np.arange(prompt_tokens, prompt_tokens + lengths[-1])
    each_s = np.interp(known, tokens, times_s)
    total_s = np.cumsum(each_s)
    return Curve(
        tuple(lengths),
        tuple(float(total_s[length - 1]) for length in lengths),
        tuple(float(each_s[length - 1] * 1000) for length in lengths),
    )


def even_lengths(most: int, count: int = 16) -> list[int]:
    return sorted({max(2, round(most * number / count)) for number in range(1, count + 1)})
