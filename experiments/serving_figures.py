"""The figures of what was seen, and what several rounds of them say together. Pure."""

import statistics
from collections.abc import Iterable, Sequence
from itertools import pairwise

from experiments.figures import percentile
from experiments.serving_answers import Answer, Seen

Figures = dict[str, float | None]

#: Compared with the first server, round by round.
COMPARED = (
    "output_tokens_per_s",
    "ttft_p50_s",
    "ttft_p95_s",
    "inter_token_p50_ms",
    "inter_token_p99_ms",
    "during_p99_ms",
    "during_max_ms",
)


def gaps_ms(streams: Iterable[Answer]) -> list[float]:
    return [1000 * (b - a) for stream in streams for a, b in pairwise(stream.came_s)]


def gaps_between_ms(streams: Iterable[Answer], begin_s: float, end_s: float) -> list[float]:
    """Those that end after the begin and begin before the end: of a stream that stood still all the
    while there is one."""
    pairs = (pair for stream in streams for pair in pairwise(stream.came_s))
    return [1000 * (b - a) for a, b in pairs if b > begin_s and a < end_s]


def to_figures(seen: Seen) -> Figures:
    """Of one round. ``None`` is a figure of nothing."""
    answers = [answer for answer in seen.answers if not answer.error]
    firsts_s = [answer.came_s[0] - answer.sent_s for answer in answers if answer.came_s]
    prompt_tokens = sum(answer.prompt_tokens for answer in answers)
    cached_tokens = sum(answer.cached_tokens for answer in answers)
    output_tokens = sum(answer.output_tokens for answer in answers)
    num_pieces = sum(len(answer.came_s) for answer in answers)
    gaps = gaps_ms(answers)
    figures: Figures = {
        "requests": len(seen.answers),
        "errors": sum(bool(answer.error) for answer in seen.answers),
        "output_tokens_per_s": _round(output_tokens / (seen.ended_s - seen.began_s)),
        "ttft_p50_s": _percentile(firsts_s, 50),
        "ttft_p95_s": _percentile(firsts_s, 95),
        "inter_token_p50_ms": _percentile(gaps, 50),
        "inter_token_p99_ms": _percentile(gaps, 99),
        "prompt_tokens": prompt_tokens,
        "cached_tokens": cached_tokens,
        "hit_rate": _round(cached_tokens / prompt_tokens) if prompt_tokens else None,
        "tokens_per_piece": _round(output_tokens / num_pieces) if num_pieces else None,
    }
    return figures | _of_streams(seen) if seen.streams else figures


def _of_streams(seen: Seen) -> Figures:
    """The streams before the long prompts came and while they were computed. Tokens per second of the
    clients' own few tokens would say nothing."""
    sent_s = min(answer.sent_s for answer in seen.answers)
    end_s = max(answer.came_s[0] if answer.came_s else seen.ended_s for answer in seen.answers)
    # A gap in which the first prompt was sent is one of the time after it.
    quiet = gaps_ms(_cut(stream, seen.quiet_s, sent_s) for stream in seen.streams)
    during = gaps_between_ms(seen.streams, sent_s, end_s)
    figures: Figures = {
        "output_tokens_per_s": None,
        "inter_token_p50_ms": None,
        "inter_token_p99_ms": None,
        "streams": len(seen.streams),
        # Each is to run until it is closed.
        "stream_errors": sum(bool(s.error) or s.has_usage for s in seen.streams),
    }
    for name, gaps in (("before", quiet), ("during", during)):
        for percent, label in ((50, "p50"), (99, "p99"), (100, "max")):
            figures[f"{name}_{label}_ms"] = _percentile(gaps, percent)
    return figures


def _cut(stream: Answer, begin_s: float, end_s: float) -> Answer:
    return Answer(stream.sent_s, [s for s in stream.came_s if begin_s <= s <= end_s])


def over_rounds(rounds: Sequence[Figures]) -> dict[str, dict[str, float]]:
    """Median, least and most of each figure that has a value in any round."""
    names = dict.fromkeys(name for figures in rounds for name in figures)
    values = {n: [v for figures in rounds if (v := figures.get(n)) is not None] for n in names}
    return {name: _spread(found) for name, found in values.items() if found}


def ratios(rounds: Sequence[Figures], base: Sequence[Figures]) -> dict[str, dict[str, float]]:
    """Of each round to the same round of ``base``: what else the machine did then cancels out."""
    found: dict[str, list[float]] = {}
    for ours, theirs in zip(rounds, base, strict=True):
        for name in COMPARED:
            value, other = ours.get(name), theirs.get(name)
            if value is not None and other:
                found.setdefault(name, []).append(value / other)
    return {name: _spread(values) for name, values in found.items()}


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {
        "median": _round(statistics.median(values)),
        "min": _round(min(values)),
        "max": _round(max(values)),
    }


def _percentile(values: Sequence[float], percent: float) -> float | None:
    """JSON has no number for the percentile of nothing."""
    return _round(percentile(values, percent)) if values else None


def _round(value: float) -> float:
    return round(value, 3)
