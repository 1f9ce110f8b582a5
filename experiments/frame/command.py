"""From options to results, files and an exit code: of one experiment, or of several."""

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from cli.bench.canvas import check_plots
from cli.card import open_console, print_card
from cli.job import EXIT_INTERRUPTED
from experiments.frame.card import complete_card, shown_card
from experiments.frame.folder import read_results, results_folder
from experiments.frame.run import Outcome, conduct, keep, run_of
from experiments.frame.setting import Setting
from experiments.frame.show import comparison, print_paragraph, show
from experiments.frame.study import Study
from shared.errors import BadRequest

EXIT_WRONG = 1


def run_studies(
    studies: Sequence[tuple[Study, Setting]],
    *,
    out: Path | None,
    compare: Path | None,
    has_plots: bool,
) -> tuple[list[Outcome], Path]:
    """Raises ``ServiceError`` before anything is measured where something cannot be."""
    if has_plots:
        check_plots()
    names = [study.name for study, _ in studies]
    others = read_results(compare, names) if compare else {}
    for study, setting in studies:
        study.check(setting)
        if compare and study.name in others:
            _check_comparable(study, others[study.name], compare, has_plots=has_plots)
    _, first = studies[0]
    folder = results_folder(out, first.settings, is_quick=first.is_quick)
    card = complete_card(first)
    console = open_console()
    print_card(console, shown_card(card))
    outcomes: list[Outcome] = []
    for study, setting in studies:
        print_paragraph(console, "")
        outcome = conduct(study, replace(setting, card=card), others.get(study.name))
        outcomes.append(outcome)
        try:
            keep(outcome, folder, has_plots=has_plots)
            show(console, outcome)
        except KeyboardInterrupt:
            outcome.result["is_interrupted"] = True
        except BrokenPipeError:
            raise
        except OSError as error:
            outcome.problem = f"its result cannot be kept: {error}"
        if outcome.is_interrupted:
            break
    return outcomes, folder


def _check_comparable(study: Study, other: dict[str, Any], path: Path, *, has_plots: bool) -> None:
    """Of another version, say, figures may be others: that is said before anything is measured. Raises
    ``BadRequest``."""
    try:
        run = run_of(other)
        comparison(study, run, run)
        if has_plots:
            study.draw([run, run])
    except (LookupError, TypeError, ValueError, AttributeError, StopIteration) as error:
        raise BadRequest(
            f"--compare {path}: its figures of {study.name} are not those of this version "
            f"({type(error).__name__}: {error})",
            field="--compare",
        ) from None


def finish(outcomes: Sequence[Outcome], result: dict[str, Any], files: Sequence[Path]) -> int:
    """Says what was written; the last line of the output is the result. The exit code."""
    aside = Console(stderr=True, soft_wrap=True)
    for file in files:
        aside.print(f"wrote {file}", markup=False, highlight=False)
    problems = [
        f"{outcome.study.name}: {problem}"
        for outcome in outcomes
        if (problem := outcome.problem or outcome.result.get("figures", {}).get("problem"))
    ]
    for problem in problems:
        aside.print(f"error: {problem}", markup=False, highlight=False, style="bold red")
    sys.stdout.write(json.dumps(result) + "\n")
    sys.stdout.flush()
    if result["is_interrupted"]:
        return EXIT_INTERRUPTED
    return EXIT_WRONG if problems else 0
