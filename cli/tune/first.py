"""The measurement before a first start: a quick one, kept for whoever starts later. It fails nobody: what
cannot be measured is said, and the default is run."""

from cli.tune.measures import Measure
from cli.tune.quick import Layout, measure_quick, plan_quick
from cli.tune.run import make_record
from cli.tune.search import Trial
from cli.tune.setup import cores_in_use
from shared.cores import usable_cores
from shared.errors import ServiceError
from shared.logs import say
from shared.models import ResolvedModel
from shared.settings import Settings
from shared.tuning import TuneRecord, find_record, save_record, tune_key
from shared.weight_formats import AS_IS


def measure_first(
    settings: Settings, model: ResolvedModel, layout: Layout | None = None
) -> TuneRecord | None:
    """``layout``, where that is settled: then only formats are told apart. None where nothing could be
    measured."""
    if cores_in_use(settings.host_dir):
        say(
            "not measured: other workers run on this host; `mini-vllm tune` measures when they do not"
        )
        return None
    try:
        plan, chosen = plan_quick(settings, model, layout)
        say(
            "first start with this model: measuring for up to 10 s (--no-tune or MINI_VLLM_TUNE=0 skips it)"
        )
        decision = measure_quick(settings, plan, chosen, _tell)
        if decision.chosen is None:
            say("nothing could be measured in so short a time; `mini-vllm tune` takes its time")
            return None
        record = make_record(settings, plan, decision, "quick")
    except ServiceError as error:
        say(f"not measured: {error.message}")
        return None
    try:
        save_record(settings.model_dir, record)
    except ServiceError as error:
        say(f"not kept: {error.message}")
    return record


def prepare_record(settings: Settings, model: ResolvedModel) -> None:
    """For workers that others start on these cores, as many as the settings say."""
    if not settings.tune:
        say("not measured: MINI_VLLM_TUNE is off")
        return
    key = tune_key(model.path, settings.model_dir)
    found = find_record(settings.model_dir, key, settings.tune_concurrency)
    for remark in found.remarks:
        say(remark)
    if found.record:
        say(f"workers find the {found.record}")
    elif settings.weight_format != AS_IS:
        say(f"not measured: MINI_VLLM_WEIGHT_FORMAT={settings.weight_format} is given")
    else:
        layout = settled_layout(settings, len(usable_cores().cores))
        if record := measure_first(settings, model, layout):
            say(f"workers find the {record}: {record.choice}")


def settled_layout(settings: Settings, num_cores: int) -> Layout | None:
    """None where nothing is said of it. What is too much for the cores is cut: some workers would wait."""
    workers, threads = settings.workers, settings.threads
    if not workers and not threads:
        return None
    threads = min(threads or max(1, num_cores // workers), num_cores)
    return Layout(min(workers or num_cores, num_cores // threads), threads)


def _tell(trial: Trial, made: Measure | None, problem: str) -> None:
    if problem:
        say(f"  {trial.candidate}: {problem}")
    elif made:
        say(f"  {trial.candidate}: about {made.output_tokens_per_s:.0f} tokens/s")
