"""What `up` runs with: a record for this model and machine, or what a quick measurement finds."""

from typing import Any

from cli.tune.first import measure_first
from shared.converted import weights_path
from shared.cores import memory_available_bytes
from shared.errors import ServiceError
from shared.footprint import footprint_of
from shared.gguf_header import read_facts
from shared.logs import say
from shared.models import ResolvedModel, resolve_model
from shared.settings import Settings
from shared.tuned import apply_record
from shared.tuning import TuneRecord, find_record, tune_key

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
        say(remark)
    has_layout = workers is not None or threads is not None
    record = found.record or _measured(settings, model, has_layout)
    if record is None:
        return settings, workers, threads
    tuned = apply_record(record, settings, has_layout=has_layout, workers=workers)
    settled = settings.model_copy(update=dict(tuned.changes))
    try:
        weights = weights_path(model, settled.weight_format, settled.model_dir)
        problem = _memory_problem(settled, weights, tuned.workers or workers or 1)
    except ServiceError as error:
        problem = error.message
    if problem:
        say(f"the {record} is not used: {problem}")
        return settings, workers, threads
    say(f"uses the {record}: {tuned}; --no-tune does without")
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
    """Not where what it would find is said already, in part at least."""
    if has_layout or {"slots", "weight_format"} & settings.model_fields_set:
        return None
    return measure_first(settings, model)
