"""What came of the trials of a candidate: the figures of its workers together. Pure.

A full trial is measured while all of its workers are busy. A short one sees how long a decode step of all
rows and a prompt take, from which follows how a closed loop would go.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cli.tune.candidates import Candidate
from shared.trials import RequestShape, Step, TrialReport

#: As in ``worker.pace``: so much of a prompt is computed in a step whatever it takes.
_LEAST_CHUNK_TOKENS = 16
_NO_TIME_S = 1e-9


@dataclass(frozen=True, slots=True)
class Measure:
    """``memory_bytes`` counts shared pages once, and no KV cache: that of a trial is smaller than that of
    the service. ``delayed_share``: of the time of its threads, what others had of their cores."""

    candidate: Candidate
    is_short: bool
    output_tokens_per_s: float
    prompt_tokens_per_s: float
    ttft_p50_ms: float | None
    ttft_p99_ms: float | None
    itl_p50_ms: float | None
    itl_p99_ms: float | None
    memory_bytes: int
    rss_bytes: int
    delayed_share: float
    stolen_share: float
    batch_invariant: bool | None
    prefill_tokens_per_s: float
    step_ms: float
    took_s: float = 0.0


def known_invariance(candidate: Candidate, done: Iterable[Measure]) -> bool | None:
    """Whether its tokens depend on the batch, as checks of others of its format found, with several threads
    or one as it has. They compare a lone row with all slots at once: what held for more slots holds for
    fewer, and what depends on a few depends on more. None: no check tells."""
    for made in done:
        other = made.candidate
        is_alike = other.weight_format == candidate.weight_format and (other.threads > 1) == (
            candidate.threads > 1
        )
        if is_alike and made.batch_invariant is True and other.slots >= candidate.slots:
            return True
        if is_alike and made.batch_invariant is False and other.slots <= candidate.slots:
            return False
    return None


def percentile(values: Sequence[float], percent: float) -> float | None:
    """Nearest rank: a value that was measured."""
    if not values:
        return None
    ordered = sorted(values)
    rank = math.ceil(percent / 100 * len(ordered))
    return ordered[max(0, min(len(ordered), rank) - 1)]


def measure(
    candidate: Candidate,
    reports: Sequence[TrialReport],
    shapes: Sequence[RequestShape],
    *,
    is_short: bool,
    stall_ms: float,
    took_s: float = 0.0,
) -> Measure:
    busy = [report for report in reports if report.clients]
    loads = [_Load(report) for report in busy]
    speed = _estimate(loads, shapes, stall_ms) if is_short else _observe(busy)
    threads_s = sum(r.threads * _observed_s(r) for r in busy) or _NO_TIME_S
    checks = [r.batch_invariant for r in reports if r.batch_invariant is not None]
    return Measure(
        candidate=candidate,
        is_short=is_short,
        output_tokens_per_s=speed.output_tokens_per_s,
        prompt_tokens_per_s=speed.prompt_tokens_per_s,
        ttft_p50_ms=percentile(speed.ttft_ms, 50),
        ttft_p99_ms=percentile(speed.ttft_ms, 99),
        itl_p50_ms=percentile(speed.itl_ms, 50),
        itl_p99_ms=percentile(speed.itl_ms, 99),
        memory_bytes=sum(r.pss_bytes - r.kv_cache_bytes for r in reports),
        rss_bytes=sum(r.rss_bytes - r.kv_cache_bytes for r in reports),
        delayed_share=sum(r.delayed_s for r in busy) / threads_s,
        stolen_share=sum(r.stolen_s for r in busy) / threads_s,
        batch_invariant=all(checks) if checks else None,
        prefill_tokens_per_s=sum(load.prefill_tokens_per_s for load in loads),
        step_ms=statistics.fmean(load.step_s * 1000 for load in loads) if loads else 0.0,
        took_s=took_s,
    )


@dataclass(frozen=True, slots=True)
class _Speed:
    output_tokens_per_s: float
    prompt_tokens_per_s: float
    ttft_ms: Sequence[float]
    itl_ms: Sequence[float]


class _Load:
    """How fast one worker decodes and reads prompts, from its steps."""

    def __init__(self, report: TrialReport) -> None:
        self.rows = min(report.clients, report.slots)
        self.clients = report.clients
        self.step_s = self._step_s(report.steps)
        self.prefill_tokens_per_s = self._prefill(report.steps)

    def _step_s(self, steps: Sequence[Step]) -> float:
        decodes = [step for step in steps if step.output_tokens and not step.prompt_tokens]
        whole = [step.spent_s for step in decodes if step.output_tokens == self.rows]
        if whole:
            return statistics.median(whole)
        # Never all rows at once: a row more costs no more than those before it.
        return max((s.spent_s * self.rows / s.output_tokens for s in decodes), default=0.0)

    def _prefill(self, steps: Sequence[Step]) -> float:
        prompts = [step for step in steps if step.prompt_tokens]
        alone = [step for step in prompts if not step.output_tokens]
        spent_s = sum(step.spent_s for step in alone)
        if not alone:
            spent_s = sum(max(step.spent_s / 4, step.spent_s - self.step_s) for step in prompts)
        num_tokens = sum(step.prompt_tokens for step in alone or prompts)
        return num_tokens / spent_s if spent_s else 0.0


def _observed_s(report: TrialReport) -> float:
    if not report.steps:
        return 0.0
    return report.steps[-1].end_s - report.steps[0].end_s + report.steps[0].spent_s


def _observe(busy: Sequence[TrialReport]) -> _Speed:
    begin_s = max((report.begin_s for report in busy), default=0.0)
    end_s = min((report.end_s for report in busy), default=0.0)
    window_s = end_s - begin_s
    if window_s <= 0:  # one was done before another began: they are looked at one by one
        parts = [_observe([report]) for report in busy if report.end_s > report.begin_s]
        if len(busy) == 1 or not parts:
            return _Speed(0.0, 0.0, (), ())
        return _Speed(
            sum(part.output_tokens_per_s for part in parts),
            sum(part.prompt_tokens_per_s for part in parts),
            [ms for part in parts for ms in part.ttft_ms],
            [ms for part in parts for ms in part.itl_ms],
        )
    seen = [step for r in busy for step in r.steps if begin_s < step.end_s <= end_s]
    return _Speed(
        sum(step.output_tokens for step in seen) / window_s,
        sum(step.prompt_tokens for step in seen) / window_s,
        [ms for report in busy for ms in report.ttft_ms],
        [ms for report in busy for ms in report.itl_ms],
    )


def _estimate(loads: Sequence[_Load], shapes: Sequence[RequestShape], stall_ms: float) -> _Speed:
    """Each row reads a prompt, alone, and then decodes with the others; who has no slot waits."""
    prompt_tokens = statistics.fmean(shape.prompt_tokens for shape in shapes)
    output_tokens = statistics.fmean(shape.output_tokens for shape in shapes)
    outputs = prompts = 0.0
    ttft_ms, itl_ms = [], []
    for load in loads:
        if not load.prefill_tokens_per_s or not load.step_s:
            continue
        prompt_s = prompt_tokens / load.prefill_tokens_per_s
        round_s = load.rows * prompt_s + output_tokens * load.step_s
        outputs += load.rows * output_tokens / round_s
        prompts += load.rows * prompt_tokens / round_s
        waiting_s = round_s * (load.clients - load.rows) / load.rows
        ttft_ms.append((prompt_s + load.step_s + waiting_s) * 1000)
        chunk_s = max(stall_ms / 1000, _LEAST_CHUNK_TOKENS / load.prefill_tokens_per_s)
        # A step in how many is held up by a prompt decides what its 99th percentile is.
        itl_ms += [load.step_s * 1000] * 9 + [(load.step_s + min(chunk_s, prompt_s)) * 1000]
    return _Speed(outputs, prompts, ttft_ms, itl_ms)
