"""What `up` runs with: a record for this model and machine, or what a quick measurement finds."""

import sys
from typing import Any

from cli.tune.measures import Measure
from cli.tune.quick import measure_quick, plan_quick
from cli.tune.run import make_record
from cli.tune.search import Trial
from cli.tune.setup import cores_in_use
from shared.converted import weights_path
from shared.cores import memory_available_bytes
from shared.errors import ServiceError
from shared.footprint import footprint_of
from shared.gguf_header import read_facts
from shared.models import ResolvedModel, resolve_model
from shared.settings import Settings
from shared.tuned import apply_record
from shared.tuning import TuneRecord, find_record, save_record, tune_key

_MEMORY_SHARE = 0.9

_Settled = tuple[Settings, int | None, int | None]


def settle(settings: Settings, workers: int | None, threads: int | None) -> _Settled:
    """Settings, workers and threads with what a record says and nobody said otherwise."""
    if not settings.tune:
        return settings, workers, threads
    model = resolve_model(settings.model, settings.model_dir)
    key = tune_key(model.path, settings.model_dir)
    found = find_record(settings.model_dir, key, settings.tune_concurrency)
    for remark in found.remarks:
        _say(remark)
    has_layout = workers is not None or threads is not None
    record = found.record or _measured(settings, model, has_layout)
    if record is None:
        return settings, workers, threads
    tuned = apply_record(record, settings, has_layout=has_layout)
    settled = settings.model_copy(update=dict(tuned.changes))
    try:
        weights = weights_path(model, settled.weight_format, settled.model_dir)
        problem = _memory_problem(settled, weights, tuned.workers or workers or 1)
    except ServiceError as error:
        problem = error.message
    if problem:
        _say(f"the {record} is not used: {problem}")
        return settings, workers, threads
    _say(f"uses the {record}: {tuned}; --no-tune does without")
    return settled, tuned.workers or workers, tuned.threads or threads


def _memory_problem(settings: Settings, weights: Any, workers: int) -> str:
    footprint = footprint_of(
        read_facts(weights), slots=settings.slots, context_tokens=settings.context_tokens
    )
    need, free = footprint.planned_bytes * workers, memory_available_bytes() * _MEMORY_SHARE
    if need <= free:
        return ""
    return f"its {workers} workers need about {need / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free"


def _measured(settings: Settings, model: ResolvedModel, has_layout: bool) -> TuneRecord | None:
    """None where it cannot be measured, or need not."""
    if has_layout or {"slots", "weight_format"} & settings.model_fields_set:
        return None  # what it would find is said already, in part at least
    if cores_in_use(settings.host_dir):
        _say(
            "not measured: other workers run on this host; `mini-vllm tune` measures when they do not"
        )
        return None
    try:
        plan, chosen = plan_quick(settings, model)
        _say("first start with this model: measuring for up to 10 s (--no-tune skips it)")
        decision = measure_quick(settings, plan, chosen, _tell)
        if decision.chosen is None:
            _say("nothing could be measured in so short a time; `mini-vllm tune` takes its time")
            return None
        record = make_record(settings, plan, decision, "quick")
    except ServiceError as error:
        _say(f"not measured: {error.message}")
        return None
    try:
        save_record(settings.model_dir, record)
    except ServiceError as error:
        _say(f"not kept: {error.message}")
    return record


def _tell(trial: Trial, made: Measure | None, problem: str) -> None:
    if problem:
        _say(f"  {trial.candidate}: {problem}")
    elif made:
        _say(f"  {trial.candidate}: about {made.output_tokens_per_s:.0f} tokens/s")


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)
