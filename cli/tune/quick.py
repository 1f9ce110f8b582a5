"""What `up` measures before its first start: a few short trials, 10 s at most with conversions."""

import time
from dataclasses import dataclass

from cli.tune.candidates import Candidate, slots_for
from cli.tune.decision import Decision, Limits, decide
from cli.tune.formats import size_bytes
from cli.tune.search import Search
from cli.tune.session import Session, Tell
from cli.tune.setup import Plan, fits, make_bench, make_files, make_plan
from cli.tune.trials import Load
from shared.errors import SetupError
from shared.models import ResolvedModel
from shared.settings import Settings
from shared.trials import RequestShape
from shared.weight_formats import AS_IS

BUDGET_S = 9.0  #: the last trial may take a second more
#: What is not converted in a few seconds is left to `mini-vllm tune`, and what does not load in them.
_MAX_BYTES = 500_000_000
#: Of the load: nobody has said what requests are like.
_SHAPE = RequestShape(prompt_tokens=64, output_tokens=64)
_FORMAT = "bf16"


@dataclass(frozen=True, slots=True)
class Layout:
    workers: int
    threads: int


def plan_quick(
    settings: Settings, model: ResolvedModel, layout: Layout | None = None
) -> tuple[Plan, list[Candidate]]:
    """The default layout as it is and as BF16, then one process with all cores; or both formats in the
    ``layout`` that is settled. Raises ``SetupError``."""
    load = Load(settings.tune_concurrency, (_SHAPE,))
    plan = make_plan(settings, model, load, formats="upcast", limits=Limits())
    fitting = [
        c
        for c in plan.candidates
        if c.weight_format in (AS_IS, _FORMAT)
        and size_bytes(plan.facts, c.weight_format) <= _MAX_BYTES
    ]
    if layout:
        slots = _settled_slots(settings, layout)
        names = sorted({c.weight_format for c in fitting})
        settled = [Candidate(name, layout.workers, layout.threads, slots) for name in names]
        return plan, _enough([c for c in settled if fits(plan, c)])
    many = [c for c in fitting if c.threads == 1]
    one = [c for c in fitting if c.workers == 1 and c.threads > 1]
    return plan, _enough(
        [*sorted(many), *sorted(one, key=lambda c: c.weight_format != _FORMAT)[:1]]
    )


def _settled_slots(settings: Settings, layout: Layout) -> int:
    if "slots" in settings.model_fields_set:
        return settings.slots
    return slots_for(settings.tune_concurrency, layout.workers)


def _enough(chosen: list[Candidate]) -> list[Candidate]:
    if len(chosen) < 2:
        raise SetupError("there is nothing to choose from in so short a time")
    return chosen


def measure_quick(settings: Settings, plan: Plan, chosen: list[Candidate], tell: Tell) -> Decision:
    files = make_files(plan, settings)
    search = Search(
        candidates=chosen,
        default=next((c for c in chosen if c.weight_format == AS_IS), chosen[0]),
        single=chosen[-1],
        limits=plan.limits,
        budget_s=BUDGET_S,
        making_s=files.expected_s,
        is_quick=True,
    )
    session = Session(
        search=search,
        bench=make_bench(plan, settings, files, window_s=1.0),
        files=files,
        tell=tell,
        checks=False,
        clock=time.monotonic,
    )
    session.run()
    if session.was_interrupted:
        raise KeyboardInterrupt
    return decide(search.measures, plan.limits, default=search.default, single=search.single)
