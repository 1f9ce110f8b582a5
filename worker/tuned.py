"""What the tuner found for this model and machine, for a worker that was started by hand."""

import logging

from shared.converted import weights_path
from shared.errors import SetupError, UnknownModel
from shared.models import ResolvedModel
from shared.settings import Settings
from shared.tuned import apply_record
from shared.tuning import find_record, has_records, tune_key
from worker.room import check_room

log = logging.getLogger("worker")


def use_record(settings: Settings, model: ResolvedModel) -> Settings:
    """The settings with what a record says and nobody said otherwise. Its number of threads is used only
    where as many workers are meant to be here as it has: others would be left without cores. Nor where it is
    their share of the cores anyway, which they take without being told, and which follows their number."""
    if not settings.tune or not has_records(settings.model_dir):
        return settings
    key = tune_key(model.path, settings.model_dir)
    found = find_record(settings.model_dir, key, settings.tune_concurrency)
    for remark in found.remarks:
        log.info("%s", remark)
    record = found.record
    if record is None:
        return settings
    has_layout = "threads" in settings.model_fields_set or settings.workers != record.workers
    workers = settings.workers or None
    tuned = apply_record(record, settings, has_layout=has_layout, workers=workers)
    changes = dict(tuned.changes)
    if tuned.threads and tuned.threads != record.key.cores // record.workers:
        changes["threads"] = tuned.threads
    changed = settings.model_copy(update=changes)
    try:
        check_room(changed, weights_path(model, changed.weight_format, settings.model_dir))
    except (UnknownModel, SetupError) as error:
        log.warning("the %s is not used: %s", record, error.message)
        return settings
    log.info("uses the %s: %s", record, ", ".join(f"{k} {v}" for k, v in changes.items()))
    return changed
