"""`mini-vllm experiment all`: every experiment, one after the other, and a report of them."""

import time
from dataclasses import dataclass, replace
from typing import Any

from experiments.batching.study import STUDY as BATCHING
from experiments.cache_complexity.study import STUDY as CACHE_COMPLEXITY
from experiments.frame.command import finish, run_studies
from experiments.frame.run import to_text, without_samples
from experiments.frame.setting import Setting
from experiments.frame.study import Study
from experiments.kv_cache.study import STUDY as KV_CACHE
from experiments.layouts.study import STUDY as LAYOUTS
from experiments.options import Given
from experiments.prefix_cache.study import STUDY as PREFIX_CACHE
from experiments.quantization.study import STUDY as QUANTIZATION
from experiments.report.files import write_report
from experiments.report.markdown import to_markdown
from experiments.report.page import to_html
from experiments.report.parts import card_rows, part_of, summary
from experiments.threads.study import STUDY as THREADS

NAME = "all"
STUDIES: tuple[Study, ...] = (
    KV_CACHE,
    CACHE_COMPLEXITY,
    THREADS,
    BATCHING,
    PREFIX_CACHE,
    QUANTIZATION,
    LAYOUTS,
)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The studies of this machine; ``left_out``: what it cannot show, and why."""

    studies: tuple[Study, ...]
    left_out: tuple[str, ...]


def choose(setting: Setting) -> Chosen:
    if len(setting.machine.cores) > 1:
        return Chosen(STUDIES, ())
    rest = tuple(study for study in STUDIES if study is not LAYOUTS)
    return Chosen(rest, ("layouts: with one core there is one layout only",))


def again(given: Given, study: Study) -> str:
    """The command for one of them alone. What tries several numbers of threads is not given one."""
    tries_threads = study in (THREADS, LAYOUTS)
    return (replace(given, threads=None) if tries_threads else given).command(study.name)


def carry_out_all(given: Given) -> int:
    """The exit code. Raises ``ServiceError`` before anything is measured where something cannot "
    "be."""
    began_s = time.monotonic()
    setting = given.setting()
    chosen = choose(setting)
    outcomes, folder = run_studies(
        [(study, setting) for study in chosen.studies],
        out=given.out,
        compare=given.compare,
        has_plots=given.has_plots,
    )
    result: dict[str, Any] = {
        "experiment": NAME,
        "card": outcomes[0].result["card"],
        "reproduce": given.command(NAME),
        "is_quick": given.is_quick,
        "is_interrupted": any(outcome.is_interrupted for outcome in outcomes),
        "left_out": list(chosen.left_out),
        "took_s": round(time.monotonic() - began_s, 1),
    }
    results = {o.study.name: o.result for o in outcomes if "figures" in o.result}
    files = [file for outcome in outcomes for file in outcome.files]
    # What is not whole takes the place of nothing that is.
    is_whole = all(outcome.is_whole for outcome in outcomes)
    parts = [part_of(o, again(given, o.study)) for o in outcomes]
    said = card_rows(result["card"]), summary(outcomes), result["reproduce"]
    written, is_interrupted = write_report(
        folder,
        "report" if is_whole else "report-interrupted",
        {
            "html": lambda: to_html(parts, *said),
            "md": lambda: to_markdown(parts, *said),
            "json": lambda: to_text(result | {"experiments": results}),
        },
    )
    result["is_interrupted"] |= is_interrupted
    files += written
    shown = {name: without_samples(found) for name, found in results.items()}
    return finish(outcomes, result | {"experiments": shown}, files)
