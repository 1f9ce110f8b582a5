"""What is shown while the tuner works: a bar of the budget, and a line for each trial. On stderr."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from cli.tune.measures import Measure
from cli.tune.search import Trial
from cli.tune.session import Tell


@contextmanager
def shown_progress(budget_s: float) -> Iterator[Tell]:
    console, began_s = Console(stderr=True, highlight=False), time.monotonic()
    columns = BarColumn(), TimeRemainingColumn(), TextColumn("{task.description}")
    with Progress(*columns, console=console, transient=True) as progress:
        row = progress.add_task("starting", total=budget_s)

        def tell(trial: Trial, made: Measure | None, problem: str) -> None:
            spent_s = time.monotonic() - began_s
            progress.update(row, completed=min(spent_s, budget_s))
            if problem:
                console.print(f"{trial.candidate}: {problem}", markup=False)
            elif made is None:
                progress.update(row, description=f"{trial.stage}: {trial.candidate}")
            else:
                about = "about " if made.is_short else ""
                speed = f"{about}{made.output_tokens_per_s:.0f} tokens/s"
                busy = f", {made.delayed_share:.0%} disturbed" if made.delayed_share > 0.1 else ""
                line = f"{spent_s:5.0f} s  {trial.stage:<15}  {trial.candidate}: {speed}{busy}"
                console.print(line, markup=False)

        yield tell
