"""`mini-vllm tune`: plans, measures, decides, tells, and keeps what it chose."""

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rich.console import Console

from cli.tune.decision import Decision, Limits, Row, decide
from cli.tune.formats import FormatChoice
from cli.tune.plot import draw
from cli.tune.progress import shown_progress
from cli.tune.report import expectation, figures, make_table, sentence, to_json
from cli.tune.session import Session
from cli.tune.setup import Plan, cores_in_use, make_bench, make_files, make_plan, make_search
from cli.tune.trials import Load
from shared.errors import SetupError
from shared.models import resolve_model
from shared.settings import Settings
from shared.tuning import TuneRecord, find_record, save_record, tune_key

_MIN_WINDOW_S, _MAX_WINDOW_S = 1.0, 5.0
#: Of the budget, one window.
_WINDOW_SHARE = 1 / 40
_FILE_WIDTH = 170


@dataclass(frozen=True, slots=True)
class Wish:
    """What the command line asked for."""

    load: Load
    limits: Limits
    formats: FormatChoice
    budget_s: float
    plot: Path | None = None
    keeps: bool = True


def tune(settings: Settings, wish: Wish) -> None:
    """Raises ``SetupError`` where nothing can be chosen."""
    model = resolve_model(settings.model, settings.model_dir)
    plan = make_plan(settings, model, wish.load, formats=wish.formats, limits=wish.limits)
    say = Console(stderr=True, highlight=False, soft_wrap=True)
    for words in plan.left_out:
        say.print(f"left out: {words}", markup=False)
    if held := cores_in_use(settings.host_dir):
        say.print(
            f"warning: workers hold the cores {', '.join(held)} of this host now; figures will be too "
            "low, and their service slow: better stop it meanwhile",
            markup=False,
        )
    began_s = time.monotonic()
    session = _measure(settings, plan, wish, say)
    decision = decide(
        session.search.measures,
        plan.limits,
        default=session.search.default,
        single=session.search.single,
    )
    took_s = time.monotonic() - began_s
    _tell(session, decision, wish)
    saved, problem = None, ""
    try:
        if decision.chosen and wish.keeps:
            record = make_record(settings, plan, decision, kind_of(decision.chosen))
            saved = save_record(settings.model_dir, record)
            print(f"{who_uses(record, settings)} ({saved})")
        if wish.plot and decision.rows:
            draw(wish.plot, decision, wish.load.concurrency, wish.limits.objective)
            print(f"plot: {wish.plot}")
    except SetupError as error:  # what was measured is told all the same
        problem = error.message
    result = to_json(decision) | {
        "model": model.name,
        "objective": wish.limits.objective,
        "concurrency": wish.load.concurrency,
        "prompt_tokens": wish.load.prompt_tokens,
        "output_tokens": wish.load.output_tokens,
        "took_s": round(took_s, 1),
        "interrupted": session.was_interrupted,
        "problems": session.problems,
        "record": str(saved) if saved else None,
    }
    print(json.dumps(result))
    if problem:
        raise SetupError(problem)
    if decision.chosen is None:
        raise SetupError(sentence(decision, plan.default, plan.single, wish.limits.objective))


def kind_of(chosen: Row) -> Literal["tuned", "quick"]:
    """What was looked at shortly only, before Ctrl-C, say, takes the place of nothing that was measured
    in full."""
    return "tuned" if chosen.repeats else "quick"


def who_uses(record: TuneRecord, settings: Settings) -> str:
    """Of one that was kept just now: another may suit what `up` is asked for better."""
    used = find_record(settings.model_dir, record.key, settings.tune_concurrency).record
    if used is None or used.concurrency_class == record.concurrency_class:
        if used and used.kind != record.kind:
            return f"a short look only; `up` goes on with the {used}"
        return "`up` uses it from now on"
    return f"`up --concurrency {record.concurrency}` uses it, and `up` alone the {used}"


def _measure(settings: Settings, plan: Plan, wish: Wish, say: Console) -> Session:
    window_s = max(_MIN_WINDOW_S, min(_MAX_WINDOW_S, wish.budget_s * _WINDOW_SHARE))
    files = make_files(plan, settings)
    search = make_search(plan, wish.budget_s, files)
    say.print(expectation(search), markup=False)
    with shown_progress(wish.budget_s) as tell:
        session = Session(
            search=search,
            bench=make_bench(plan, settings, files, window_s),
            files=files,
            tell=tell,
        )
        session.run()
    return session


def _tell(session: Session, decision: Decision, wish: Wish) -> None:
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(width=_FILE_WIDTH, highlight=False)
    console.print(make_table(decision))
    search = session.search
    print()
    print(sentence(decision, search.default, search.single, wish.limits.objective))
    if decision.noise:
        print(f"The machine was noisy: {decision.noise}. Trust ratios that are large.")
    if session.was_interrupted:
        print("Interrupted: decided with what was measured until then.", file=sys.stderr)
    elif search.is_out_of_time:
        print("The budget was over before everything was tried; a larger --budget looks further.")


def make_record(settings: Settings, plan: Plan, decision: Decision, kind: str) -> TuneRecord:
    assert decision.chosen is not None
    row = decision.chosen
    candidate = row.measure.candidate
    return TuneRecord.model_validate(
        {
            "key": tune_key(plan.model.path, settings.model_dir),
            "kind": kind,
            "model": plan.model.name,
            "made_at": round(time.time(), 3),
            "workers": candidate.workers,
            "threads": candidate.threads,
            "slots": candidate.slots,
            "prefill_chunk_tokens": candidate.chunk_tokens,
            "weight_format": candidate.weight_format,
            "objective": plan.limits.objective,
            "concurrency": plan.load.concurrency,
            "prompt_tokens": plan.load.prompt_tokens,
            "output_tokens": plan.load.output_tokens,
            "memory_bytes": row.service_bytes,
            "context_tokens": plan.context_tokens,
            "figures": {
                k: None if v is None else float(v) for k, v in figures(row.measure).items()
            },
            "noise": decision.noise,
        }
    )
