"""`mini-vllm tune threads`: one worker with 1 to all cores; how fast it decodes and reads prompts."""

import json
import time

from rich.console import Console
from rich.table import Table

from cli.tune.candidates import Candidate
from cli.tune.decision import Limits
from cli.tune.measures import Measure
from cli.tune.report import figures, to_fields
from cli.tune.runner import TrialFailed
from cli.tune.setup import make_bench, make_files, make_plan
from cli.tune.trials import Load
from shared.converted import weights_path
from shared.errors import SetupError
from shared.models import ResolvedModel, resolve_model
from shared.settings import Settings
from shared.weight_formats import AS_IS

_TRIAL_LIMIT_S = 120.0
_WINDOW_S = 1.0


def tune_threads(settings: Settings, load: Load) -> None:
    """In the weight format of the settings. Ctrl-C keeps what was measured, and so does a trial that fails.
    Raises ``SetupError``."""
    model = resolve_model(settings.model, settings.model_dir)
    weights = weights_path(model, settings.weight_format, settings.model_dir)
    plan = make_plan(
        settings, ResolvedModel(model.name, weights), load, formats="as-is", limits=Limits()
    )
    bench = make_bench(plan, settings, make_files(plan, settings), _WINDOW_S)
    made: list[Measure] = []
    problem = ""
    say = Console(stderr=True, highlight=False)
    try:
        for threads in range(1, len(plan.machine.cores) + 1):
            candidate = Candidate(AS_IS, 1, threads, plan.single.slots)
            say.print(f"{threads} threads ...", markup=False)
            deadline_s = time.monotonic() + _TRIAL_LIMIT_S
            made.append(
                bench.try_out(candidate, is_short=True, checks=False, deadline_s=deadline_s)
            )
    except KeyboardInterrupt:
        say.print("interrupted: what follows was measured until then", markup=False)
    except TrialFailed as error:
        problem = f"{threads} threads: {error.message}"
    table = Table(
        *("threads", "decode tok/s", "step ms", "prompt tok/s", "disturbed"),
        box=None,
        pad_edge=False,
    )
    rows = min(load.concurrency, plan.single.slots)
    for measure in made:
        table.add_row(
            str(measure.candidate.threads),
            f"{_decode(measure, rows):.0f}",
            f"{measure.step_ms:.1f}",
            f"{measure.prefill_tokens_per_s:.0f}",
            f"{measure.delayed_share:.0%}",
        )
    Console(highlight=False).print(table)
    print(f"{weights.name}, {rows} sequences at once")
    lines = [
        to_fields(m.candidate) | figures(m) | {"decode_tokens_per_s": round(_decode(m, rows), 2)}
        for m in made
    ]
    print(json.dumps({"model": model.name, "file": str(weights), "rows": rows, "threads": lines}))
    if problem:
        raise SetupError(problem)


def _decode(measure: Measure, rows: int) -> float:
    return rows / measure.step_ms * 1000 if measure.step_ms else 0.0
