"""Measurements of a real, noisy machine, as ``tests/data`` keeps them."""

import json
from pathlib import Path

from cli.tune.candidates import Candidate
from cli.tune.measures import Measure

_DATA = Path(__file__).parents[3] / "data"


def recorded(name: str = "tune_measures") -> dict[Candidate, list[Measure]]:
    """``tune_measures`` is of a short, unlucky run, ``tune_measures_whole`` of one with all repeats."""
    measures: dict[Candidate, list[Measure]] = {}
    for fields in json.loads((_DATA / f"{name}.json").read_text())["measures"]:
        candidate = Candidate(**fields["candidate"])
        measures.setdefault(candidate, []).append(Measure(**fields | {"candidate": candidate}))
    return measures


def made(
    candidate: Candidate,
    tokens_per_s: float,
    *,
    is_short: bool = False,
    ttft_ms: float = 100.0,
    itl_ms: float = 50.0,
    memory_bytes: int = 10**9,
    delayed: float = 0.0,
    invariant: bool | None = None,
    took_s: float = 1.0,
) -> Measure:
    return Measure(
        candidate=candidate,
        is_short=is_short,
        output_tokens_per_s=tokens_per_s,
        prompt_tokens_per_s=tokens_per_s,
        ttft_p50_ms=ttft_ms,
        ttft_p99_ms=ttft_ms,
        itl_p50_ms=itl_ms,
        itl_p99_ms=itl_ms,
        memory_bytes=memory_bytes,
        rss_bytes=memory_bytes,
        delayed_share=delayed,
        stolen_share=0.0,
        batch_invariant=invariant,
        prefill_tokens_per_s=1000.0,
        step_ms=itl_ms,
        took_s=took_s,
    )
