"""An outcome on the terminal: table, paragraph, what it was compared with, how noisy it was."""

import textwrap

from rich.console import Console
from rich.table import Table as RichTable

from experiments.frame.run import Outcome
from experiments.frame.study import Run, Study, Table
from experiments.frame.words import figure

_WIDTH = 100


def show(console: Console, outcome: Outcome) -> None:
    if outcome.table is None:
        console.print(f"{outcome.study.name}: {outcome.problem}", markup=False)
        return
    print_table(console, outcome.study.title, outcome.table)
    if outcome.run and outcome.other:
        compared = comparison(outcome.study, outcome.run, outcome.other)
        print_table(console, f"compared with {outcome.other.label}", compared)
    print_paragraph(console, outcome.text)
    for note in notes_of(outcome):
        print_paragraph(console, note)


def notes_of(outcome: Outcome) -> list[str]:
    notes = []
    if outcome.result["noise"]:
        notes.append(f"This run was noisy: {outcome.result['noise']}. Trust ratios, not absolutes.")
    if outcome.is_interrupted:
        notes.append("It was interrupted: these are the figures of what was measured until then.")
    if outcome.result["broke"]:
        notes.append(f"It is not whole: {outcome.result['broke']}")
    return notes


def comparison(study: Study, ours: Run, theirs: Run) -> Table:
    """Of the headline figures that both have."""
    mine, other = study.headline(ours.figures), study.headline(theirs.figures)
    rows = [
        (name, figure(mine[name]), figure(other[name]), _ratio(mine[name], other[name]))
        for name in mine
        if name in other
    ]
    return Table(("", "this run", "the other", "this / other"), tuple(rows))


def print_table(console: Console, title: str, table: Table) -> None:
    shown = RichTable(title=title, title_justify="left", box=None, pad_edge=False)
    for number, column in enumerate(table.columns):
        shown.add_column(column, justify="left" if table.is_words(number) else "right")
    for row in table.rows:
        shown.add_row(*row)
    console.print(shown)


def print_paragraph(console: Console, text: str) -> None:
    console.print()
    for part in text.split("\n"):
        lines = textwrap.wrap(part, _WIDTH) or [""]
        console.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)


def _ratio(mine: float, other: float) -> str:
    return f"{mine / other:.2f}" if other else "-"
