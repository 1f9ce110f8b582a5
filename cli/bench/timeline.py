"""What a run looks like over time: a bar for each request, and how many tokens came when. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from cli.bench.answers import Answer, Seen

MAX_BARS = 300
_BUCKETS = 80
_LEAST_BUCKET_S = 0.1


@dataclass(frozen=True, slots=True)
class Bar:
    """Seconds since the run began: sent, the first event, the first text, the end. A server that says
    nothing before its first text has no second part."""

    sent_s: float
    began_s: float
    first_s: float
    ended_s: float
    failed: bool = False
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class Timeline:
    """``every`` tells that only each so-many-th request has a bar. Tokens per
    second of a bucket stand at its middle."""

    bars: tuple[Bar, ...]
    every: int
    times_s: tuple[float, ...]
    tokens_per_s: tuple[float, ...]
    wait_share: float  #: of the time of requests, before their first text


def to_timeline(seen: Seen) -> Timeline:
    answers = sorted([*seen.streams, *seen.answers], key=lambda answer: answer.sent_s)
    zero_s = min((answer.sent_s for answer in answers), default=seen.began_s)
    end_s = max([seen.ended_s, *(a.came_s[-1] for a in answers if a.came_s)])
    every = -(-len(answers) // MAX_BARS) or 1
    times_s, rates = _rates(answers, zero_s, end_s)
    bars = [_bar(answer, zero_s, end_s) for answer in answers]
    whole_s = sum(bar.ended_s - bar.sent_s for bar in bars)
    wait_s = sum(bar.first_s - bar.sent_s for bar in bars)
    share = wait_s / whole_s if whole_s else 0.0
    return Timeline(tuple(bars[::every]), every, times_s, rates, share)


def _bar(answer: Answer, zero_s: float, end_s: float) -> Bar:
    ended_s = answer.ended_s or end_s
    if not answer.has_usage and not answer.error:
        ended_s = max(ended_s, end_s)
    first_s = answer.came_s[0] if answer.came_s else ended_s
    began_s = min(answer.began_s or first_s, first_s)
    return Bar(
        answer.sent_s - zero_s,
        began_s - zero_s,
        first_s - zero_s,
        ended_s - zero_s,
        failed=bool(answer.error),
        is_cut=not answer.has_usage and not answer.error,
    )


def _rates(
    answers: Sequence[Answer], zero_s: float, end_s: float
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    width_s = max(_LEAST_BUCKET_S, (end_s - zero_s) / _BUCKETS)
    num_buckets = int((end_s - zero_s) / width_s) + 1
    tokens = [0.0] * num_buckets
    for answer in answers:
        pieces = len(answer.came_s)
        per_piece = answer.output_tokens / pieces if answer.output_tokens and pieces else 1.0
        for came_s in answer.came_s:
            tokens[min(num_buckets - 1, int((came_s - zero_s) / width_s))] += per_piece
    edges_s = [i * width_s for i in range(num_buckets)] + [end_s - zero_s]
    # The last bucket may be a sliver, whose rate would be noise: it goes into the one before.
    if num_buckets > 1 and edges_s[-1] - edges_s[-2] < width_s / 2:
        sliver = tokens.pop()
        tokens[-1] += sliver
        del edges_s[-2]
    buckets = [(a, b, number) for (a, b), number in zip(pairwise(edges_s), tokens, strict=True)]
    return (
        tuple((a + b) / 2 for a, b, _ in buckets),
        tuple(number / max(b - a, width_s / 2) for a, b, number in buckets),
    )
