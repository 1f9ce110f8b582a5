"""Decode and prompt speed by threads, at rest and beside a neighbour."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from experiments.frame.canvas import draw_line, label, panels, whiskers
from experiments.frame.study import Run
from experiments.threads.judging import takeaway

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PANELS = (("decode_tokens_per_s", "decode, one sequence"), ("prompt_tokens_per_s", "prompts"))
_KINDS = (("none", "at rest"), ("busy", "neighbour on one core"))


def draw(runs: Sequence[Run]) -> "Figure":
    figure, axes = panels(2, takeaway(runs[0].figures), others=[run.label for run in runs[1:]])
    cores = runs[0].figures["cores"]
    for one, (name, title) in zip(axes, _PANELS, strict=True):
        for run in reversed(runs):
            for number, (kind, told) in enumerate(_KINDS):
                rows = [r for r in run.figures["rows"] if r.get(f"{name}_{kind}")]
                spreads = [row[f"{name}_{kind}"] for row in rows]
                draw_line(
                    one,
                    [row["threads"] for row in rows],
                    [spread["median"] for spread in spreads],
                    number,
                    told,
                    is_other=run is not runs[0],
                    errors=whiskers(spreads),
                )
        counts = [row["threads"] for row in runs[0].figures["rows"]]
        if counts[-1] > cores:
            most = counts[-1] + 0.3
            one.axvspan(
                cores + 0.5,
                most,
                facecolor="#eeeeee",
                edgecolor="#999999",
                zorder=0,
                label="more threads than cores",
            )
            one.set_xlim(right=most)
        one.set_xticks(counts)
        one.set_ylim(bottom=0)
        label(one, "threads", "tokens per second", title=title)
    return figure
