"""The figures of one run, named and defined as `vllm bench serve` does. Pure.

TPOT is of a request, its time after the first token by its tokens after the first; ITL is of all gaps
between pieces of text, of all requests together (vLLM also counts pieces without any); percentiles are
interpolated. Only requests that were answered count, but in ``max_concurrent_requests``, which is of any
moment, where vLLM's is of a second. What vLLM does not have stands after it.
"""

import statistics
from collections.abc import Iterable, Sequence
from itertools import pairwise

from cli.bench.answers import Answer, Seen
from cli.bench.objectives import Objective

#: JSON has no number for a figure of nothing.
Figures = dict[str, float | None]

_PERCENTS = (90, 99)


def percentile(values: Sequence[float], percent: float) -> float:
    """Interpolated between the two nearest, as numpy has it. Of one value or more."""
    ordered = sorted(values)
    place = percent / 100 * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def to_figures(seen: Seen, objective: Objective | None = None) -> Figures:
    good = [answer for answer in seen.answers if answer.is_good]
    took_s = seen.took_s
    inputs = sum(answer.prompt_tokens for answer in good)
    outputs = sum(answer.output_tokens for answer in good)
    figures: Figures = {
        "completed": len(good),
        "failed": sum(bool(answer.error) for answer in seen.answers),
        "duration": round(took_s, 3),
        "total_input_tokens": inputs,
        "total_output_tokens": outputs,
        "request_throughput": _per_s(len(good), took_s),
        "request_goodput": None,
        "output_throughput": _per_s(outputs, took_s),
        "total_token_throughput": _per_s(inputs + outputs, took_s),
        "max_concurrent_requests": max_at_once(seen.answers),
    }
    if objective is not None:
        kept = sum(objective.is_kept(answer) for answer in good)
        figures["request_goodput"] = _per_s(kept, took_s)
    figures |= _in_ms("ttft", [a.ttft_s for a in good if a.ttft_s is not None])
    figures |= _in_ms("tpot", [a.tpot_s for a in good if a.tpot_s is not None])
    figures |= _in_ms("itl", [gap for a in good for gap in a.gaps_s])
    figures |= _in_ms("e2el", [a.e2e_s for a in good])
    figures |= _beyond_vllm(seen, good)
    return figures | _of_streams(seen) if seen.streams else figures


def _beyond_vllm(seen: Seen, good: Sequence[Answer]) -> Figures:
    inputs = sum(answer.prompt_tokens for answer in good)
    outputs = sum(answer.output_tokens for answer in good)
    cached = sum(answer.cached_tokens for answer in good)
    pieces = sum(len(answer.came_s) for answer in good)
    prompts = [answer.prompt_tokens for answer in good]
    return {
        "cut_off": sum(answer.is_cut for answer in seen.answers),
        "cached_tokens": cached,
        "hit_rate": _round(cached / inputs) if inputs else None,
        "tokens_per_piece": _round(outputs / pieces) if pieces else None,
        "mean_prompt_tokens": _round(statistics.fmean(prompts)) if prompts else None,
        "min_prompt_tokens": min(prompts, default=None),
        "max_prompt_tokens": max(prompts, default=None),
        "mean_output_tokens": _round(outputs / len(good)) if good else None,
        "min_output_tokens": min((a.output_tokens for a in good), default=None),
        # Of a core that the server could have used.
        "client_cpu_percent": _per_s(100 * seen.cpu_s, seen.took_s),
    }


def max_at_once(answers: Iterable[Answer]) -> int:
    """Most requests that had been sent and had not ended."""
    changes = [(a.sent_s, 1) for a in answers] + [(a.ended_s, -1) for a in answers]
    most = now = 0
    for _, change in sorted(changes):  # an end comes before a begin of the same time
        now += change
        most = max(most, now)
    return most


def gaps_between_s(streams: Iterable[Answer], begin_s: float, end_s: float) -> list[float]:
    """Those that end after the begin and begin before the end: of a stream that stood still all the
    while there is one."""
    pairs = (pair for stream in streams for pair in pairwise(stream.came_s))
    return [b - a for a, b in pairs if b > begin_s and a < end_s]


def _of_streams(seen: Seen) -> Figures:
    """The streams before the long prompts came and while they were computed. Tokens per second of the
    clients' own few tokens would say nothing."""
    figures: Figures = {
        "output_throughput": None,
        "total_token_throughput": None,
        "streams": len(seen.streams),
        # Each is to run until it is closed.
        "stream_errors": sum(bool(s.error) or s.has_usage for s in seen.streams),
    }
    if not seen.answers:
        return figures
    sent_s = min(answer.sent_s for answer in seen.answers)
    end_s = max(answer.came_s[0] if answer.came_s else seen.ended_s for answer in seen.answers)
    # A gap in which the first prompt was sent is one of the time after it.
    quiet = [gap for s in seen.streams for gap in _gaps_within_s(s, seen.quiet_s, sent_s)]
    during = gaps_between_s(seen.streams, sent_s, end_s)
    for name, gaps in (("before", quiet), ("during", during)):
        for percent, label in ((50, "median"), (99, "p99"), (100, "max")):
            value = percentile(gaps, percent) if gaps else None
            figures[f"{label}_{name}_ms"] = None if value is None else _round(1000 * value)
    return figures


def _gaps_within_s(stream: Answer, begin_s: float, end_s: float) -> list[float]:
    times_s = [s for s in stream.came_s if begin_s <= s <= end_s]
    return [b - a for a, b in pairwise(times_s)]


def _in_ms(name: str, values_s: Sequence[float]) -> Figures:
    ms = [1000 * value for value in values_s]
    figures = {
        f"mean_{name}_ms": statistics.fmean(ms) if ms else None,
        f"median_{name}_ms": statistics.median(ms) if ms else None,
        f"std_{name}_ms": statistics.pstdev(ms) if ms else None,
    } | {f"p{percent}_{name}_ms": percentile(ms, percent) if ms else None for percent in _PERCENTS}
    return {key: None if value is None else _round(value) for key, value in figures.items()}


def _per_s(amount: float, took_s: float) -> float | None:
    return _round(amount / took_s) if took_s > 0 else None


def _round(value: float) -> float:
    return round(value, 3)
