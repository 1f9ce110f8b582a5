"""Time of an answer by its length, and of each token by its place."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from experiments.frame.canvas import draw_line, label, panels, scale_y, whiskers
from experiments.frame.study import Run
from experiments.kv_cache.judging import takeaway

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WAYS = (("recomputed", "everything recomputed"), ("cached", "with the KV cache"))


def draw(runs: Sequence[Run]) -> "Figure":
    figure, (totals, tokens) = panels(
        2, takeaway(runs[0].figures), others=[run.label for run in runs[1:]]
    )
    for run in reversed(runs):
        is_other = run is not runs[0]
        rows = run.figures["rows"]
        for number, (way, name) in enumerate(_WAYS):
            spreads = [row[f"{way}_s"] for row in rows]
            draw_line(
                totals,
                [row["tokens"] for row in rows],
                [spread["median"] for spread in spreads],
                number,
                name,
                is_other=is_other,
                errors=whiskers(spreads),
            )
            times_ms = run.figures[f"{way}_token_ms"][1:]
            places = list(range(2, len(times_ms) + 2))
            draw_line(tokens, places, times_ms, number, name, is_other=is_other, has_marks=False)
    totals.set_ylim(bottom=0)
    scale_y(tokens)
    totals.set_xticks([row["tokens"] for row in runs[0].figures["rows"]])
    label(totals, "tokens of the answer", "seconds for the whole answer", title="the answer")
    label(tokens, "place of the token in the answer", "ms for this token (log)", title="each token")
    return figure
