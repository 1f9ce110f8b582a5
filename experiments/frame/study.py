"""What an experiment is made of. Measuring is apart from what the figures mean, so that this can be tested
on recorded samples, and drawn again beside those of another machine."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from experiments.frame.samples import Samples
from experiments.frame.setting import Setting
from experiments.frame.watch import Watch

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: What is derived from samples, as JSON.
Figures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Table:
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def is_words(self, column: int) -> bool:
        """What names its row, or is no number: it stands on the left."""
        return column == 0 or any(row[column][:1].isalpha() for row in self.rows)


@dataclass(frozen=True, slots=True)
class Run:
    """The figures of one run and what they hold for; ``label`` tells it from others in a plot."""

    label: str
    figures: Figures
    card: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Study:
    """``check`` refuses before anything is measured; ``measure`` fills the samples and may be interrupted at
    any time; ``judge`` is pure and copes with samples of which some are missing: it raises
    ``TooLittle`` if nothing can be said. Of ``headline`` a comparison makes its table."""

    name: str
    title: str
    check: Callable[[Setting], None]
    measure: Callable[[Setting, Samples, Watch], None]
    judge: Callable[[Samples, Mapping[str, Any]], Figures]
    tabulate: Callable[[Figures], Table]
    explain: Callable[[Figures, Mapping[str, Any]], str]
    draw: Callable[[Sequence[Run]], "Figure"]
    headline: Callable[[Figures], dict[str, float]]
    #: The figures that rounds should agree on.
    repeated: tuple[str, ...] = field(default=())


class TooLittle(Exception):
    """Too little was measured to say anything."""
