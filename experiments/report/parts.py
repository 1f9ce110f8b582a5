"""What both reports say, before it is HTML or Markdown. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.frame.card import shown_card
from experiments.frame.run import Outcome
from experiments.frame.show import comparison, notes_of
from experiments.frame.study import Table
from experiments.frame.words import figure

TITLE = "What makes inference fast on this machine"


@dataclass(frozen=True, slots=True)
class Part:
    """Of one experiment. ``plot`` is a PNG file; None without plots."""

    name: str
    title: str
    paragraphs: tuple[str, ...]
    tables: tuple[tuple[str, Table], ...]
    plot: Path | None
    again: str  #: the command that makes it alone
    took_s: float


def part_of(outcome: Outcome, again: str) -> Part:
    study = outcome.study
    if outcome.table is None:
        paragraphs, tables = [outcome.problem], []
    else:
        paragraphs, tables = outcome.text.split("\n"), [("", outcome.table)]
        if outcome.run and outcome.other:
            told = f"Compared with {outcome.other.label}"
            tables.append((told, comparison(study, outcome.run, outcome.other)))
    return Part(
        name=study.name,
        title=study.title,
        paragraphs=(*paragraphs, *notes_of(outcome)),
        tables=tuple(tables),
        plot=next((file for file in outcome.files if file.suffix == ".png"), None),
        again=again,
        took_s=outcome.result["took_s"],
    )


def summary(outcomes: Sequence[Outcome]) -> Table:
    """The headline figures of all."""
    rows = [
        (outcome.study.name, name, figure(value))
        for outcome in outcomes
        for name, value in outcome.result.get("headline", {}).items()
    ]
    return Table(("experiment", "figure", "value"), tuple(rows))


def card_rows(card: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(name, str(value)) for name, value in shown_card(card).items()]
