"""Which candidate is the best of those that were measured, and how sure that is. Pure."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from cli import pareto
from cli.tune.candidates import Candidate
from cli.tune.measures import Measure

Objective = Literal["throughput", "latency"]

#: What is not worth another layout than the default.
_LEAST_GAIN = 1.03
#: Of the best throughput, what the quickest answers may cost.
_LEAST_THROUGHPUT_SHARE = 0.5
#: Repeats that lie further apart, or cores that others had for longer, are said to be noisy.
NOISY_SPREAD = 0.15
NOISY_DELAY = 0.10


@dataclass(frozen=True, slots=True)
class Limits:
    """``kv_bytes_per_slot``: with the context that the service will have."""

    objective: Objective = "throughput"
    memory_bytes: int | None = None
    kv_bytes_per_slot: int = 0
    deterministic: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One candidate: medians of its repeats, and what speaks against it."""

    measure: Measure
    repeats: int
    spread: float  #: of the repeats, the largest against the smallest; 0 of one
    service_bytes: int
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """``chosen`` is None where nothing may be chosen; ``rows`` are the best first, refused ones last."""

    chosen: Row | None
    rows: tuple[Row, ...]
    pareto: tuple[Candidate, ...]
    gain_over_default: float | None
    gain_over_single: float | None
    noise: str  #: empty where it was quiet


def score(measure: Measure, objective: Objective) -> float:
    """More is better. Latency weighs the time to the first token and between tokens alike, at their
    99th percentiles."""
    if objective == "throughput":
        return measure.output_tokens_per_s
    if not measure.ttft_p99_ms or not measure.itl_p99_ms:
        return 0.0
    return 1000 / math.sqrt(measure.ttft_p99_ms * measure.itl_p99_ms)


def summarize(measures: Sequence[Measure], limits: Limits) -> Row:
    """Of one candidate. Full trials count where there are any."""
    full = [m for m in measures if not m.is_short]
    used = full or list(measures)
    speeds = [m.output_tokens_per_s for m in used]
    checks = [m.batch_invariant for m in measures if m.batch_invariant is not None]
    middle = replace(
        used[-1],
        output_tokens_per_s=statistics.median(speeds),
        prompt_tokens_per_s=statistics.median(m.prompt_tokens_per_s for m in used),
        ttft_p50_ms=_median([m.ttft_p50_ms for m in used]),
        ttft_p99_ms=_median([m.ttft_p99_ms for m in used]),
        itl_p50_ms=_median([m.itl_p50_ms for m in used]),
        itl_p99_ms=_median([m.itl_p99_ms for m in used]),
        memory_bytes=max(m.memory_bytes for m in measures),
        rss_bytes=max(m.rss_bytes for m in measures),
        delayed_share=statistics.median(m.delayed_share for m in used),
        stolen_share=statistics.median(m.stolen_share for m in used),
        batch_invariant=all(checks) if checks else None,
    )
    candidate = middle.candidate
    service_bytes = (
        middle.memory_bytes + candidate.workers * candidate.slots * limits.kv_bytes_per_slot
    )
    row = Row(middle, len(full), _spread(speeds), service_bytes)
    return replace(row, refusal=_refusal(row, limits))


def decide(
    measures: Mapping[Candidate, Sequence[Measure]],
    limits: Limits,
    *,
    default: Candidate,
    single: Candidate,
) -> Decision:
    """``default`` and ``single`` are what the gain is told against. Where full trials were made, a
    candidate that had none is not chosen."""
    rows = [summarize(of_one, limits) for of_one in measures.values() if of_one]
    rows = _refuse_slow(rows, limits.objective)
    by_candidate = {row.measure.candidate: row for row in rows}
    allowed = [row for row in rows if not row.refusal]
    fair = [row for row in allowed if row.repeats] or allowed
    best = max(fair, key=lambda row: score(row.measure, limits.objective), default=None)
    usual = by_candidate.get(default)
    if best and usual and usual in fair and _gain(best, usual, limits.objective) < _LEAST_GAIN:
        best = usual
    ordered = sorted(
        rows, key=lambda row: (bool(row.refusal), -score(row.measure, limits.objective))
    )
    return Decision(
        chosen=best,
        rows=tuple(ordered),
        pareto=pareto_front([row.measure for row in fair]),
        gain_over_default=_gain_or_none(best, usual, limits.objective),
        gain_over_single=_gain_or_none(best, by_candidate.get(single), limits.objective),
        noise=_noise(rows),
    )


def pareto_front(measures: Sequence[Measure]) -> tuple[Candidate, ...]:
    """None of the others has both more throughput and quicker answers."""

    numbers = pareto.front([(m.output_tokens_per_s, score(m, "latency")) for m in measures])
    front = [measures[number] for number in numbers]
    front.sort(key=lambda m: -m.output_tokens_per_s)
    return tuple(m.candidate for m in front)


def _refusal(row: Row, limits: Limits) -> str:
    if not row.measure.output_tokens_per_s:
        return "it gave no token in its time"
    if limits.memory_bytes is not None and row.service_bytes > limits.memory_bytes:
        return (
            f"it takes {row.service_bytes / 1e9:.1f} GB, "
            f"more than the {limits.memory_bytes / 1e9:.1f} GB it may"
        )
    if limits.deterministic and row.measure.batch_invariant is not True:
        if row.measure.batch_invariant is None:
            return "not checked whether its tokens depend on the batch"
        return "its tokens depend on the batch"
    return ""


def _refuse_slow(rows: Sequence[Row], objective: Objective) -> list[Row]:
    if objective == "throughput":
        return list(rows)
    allowed = [row.measure.output_tokens_per_s for row in rows if not row.refusal]
    floor = max(allowed, default=0.0) * _LEAST_THROUGHPUT_SHARE
    words = "less than half of the best throughput"
    return [
        replace(row, refusal=words)
        if not row.refusal and row.measure.output_tokens_per_s < floor
        else row
        for row in rows
    ]


def _noise(rows: Sequence[Row]) -> str:
    """Spread between repeats, or cores that others had."""
    spread = max((row.spread for row in rows if row.repeats > 1), default=0.0)
    delayed = statistics.median([row.measure.delayed_share for row in rows]) if rows else 0.0
    stolen = statistics.median([row.measure.stolen_share for row in rows]) if rows else 0.0
    words = []
    if spread > NOISY_SPREAD:
        words.append(f"repeats of one candidate differ by up to {spread:.0%}")
    if delayed > NOISY_DELAY:
        words.append(f"other processes had our cores for {delayed:.0%} of the time")
    if stolen > NOISY_DELAY:
        words.append(f"the hypervisor took {stolen:.0%} of it")
    return "; ".join(words)


def _gain(row: Row, other: Row, objective: Objective) -> float:
    theirs = score(other.measure, objective)
    return score(row.measure, objective) / theirs if theirs else math.inf


def _gain_or_none(row: Row | None, other: Row | None, objective: Objective) -> float | None:
    """Between an estimate and what was measured in full there is none to tell."""
    if row and other and bool(row.repeats) != bool(other.repeats):
        return None
    if row is None or other is None or not score(other.measure, objective):
        return None
    return _gain(row, other, objective)


def _spread(values: Sequence[float]) -> float:
    return max(values) / min(values) - 1 if len(values) > 1 and min(values) > 0 else 0.0


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None
