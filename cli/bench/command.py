"""`mini-vllm bench`: from options to a report, files and an exit code."""

import json

from rich.console import Console
from rich.text import Text

from cli.bench.canvas import check_plots
from cli.bench.folder import fill_folder, open_folder
from cli.bench.options import Given, make_plan
from cli.bench.report import print_report
from cli.bench.result import to_json
from cli.bench.run import measure
from cli.bench.verdicts import has_answers, judge
from cli.card import load_1min, make_card, open_console
from cli.job import EXIT_INTERRUPTED

EXIT_FAILED = 1


def run_bench(given: Given, *, has_plots: bool) -> int:
    """The exit code. Raises ``ServiceError`` where nothing can be measured."""
    plan = make_plan(given)
    if plan.out is not None:
        if has_plots:
            check_plots()
        open_folder(plan.out)
    card = make_card()
    measured = measure(plan)
    card["load_1min_after"] = load_1min()
    console = open_console()
    aside = Console(stderr=True, soft_wrap=True)
    print_report(console, measured)
    result = to_json(measured, card)
    for verdict in judge(measured):
        aside.print(Text(verdict.text, style="bold red" if verdict.is_loud else ""))
    # Before the files: a disk may be full, and drawing takes a while.
    print(json.dumps(result), flush=True)
    if plan.out is not None and measured.runs:
        for path in fill_folder(plan.out, result, measured, has_plots=has_plots):
            aside.print(Text(f"wrote {path}"))
    if measured.is_interrupted:
        return EXIT_INTERRUPTED
    return 0 if has_answers(measured) and not measured.problem else EXIT_FAILED
