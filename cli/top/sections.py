"""The parts of a frame: workers, queue, curves and jobs, each in so many rows at most. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean
from typing import Any

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from cli.job_timeline import Marks, Timeline, bar, marks_for, timeline_of
from cli.jobs.tables import SHORT_ID_CHARS, status_text, tokens_text
from cli.printable import one_line
from cli.top.sparkline import ASCII_STEPS, STEPS, over_time, spark

_SPAN_S = 3600.0
#: One for each point of an hour is all there is.
_MAX_CELLS = 360
_WIDE_CHARS = 100
_MAX_BAR_CHARS = 60
_STATES = {"ready": "green", "draining": "yellow", "loading": "yellow", "waiting": "yellow"}


@dataclass(frozen=True, slots=True)
class Style:
    """What the terminal can show."""

    width: int
    marks: Marks
    steps: str

    @classmethod
    def of(cls, width: int, encoding: str) -> "Style":
        has_blocks = encoding.lower().startswith("utf")
        return cls(width, marks_for(encoding), STEPS if has_blocks else ASCII_STEPS)


def workers_table(
    view: Mapping[str, Any], throttled: Mapping[str, float], style: Style, max_rows: int
) -> RenderableType:
    """Its heading is not counted."""
    workers = view["workers"]
    if workers is None:
        return Text("Workers are shown to admin keys only.", style="dim")
    is_wide = style.width >= _WIDE_CHARS
    table = _table("workers", "state", "cores")
    if is_wide:
        table.add_column("model", no_wrap=True, max_width=24)
    for heading in ("slots", "tokens/s", "KV", "MB", "CPU", *(("throttled",) if is_wide else ())):
        table.add_column(heading, justify="right", no_wrap=True)
    shown = workers if len(workers) <= max_rows else workers[: max(0, max_rows - 1)]
    for worker in shown:
        cells: list[str | Text] = [
            Text(one_line(worker["name"], 24 if is_wide else 16)),
            Text(worker["state"], style=_STATES.get(worker["state"], "red")),
            _cores(worker.get("cores") or ()),
            *([Text(one_line(worker["model"], 24))] if is_wide else []),
            f"{worker['slots_used']}/{worker['slots']}",
            f"{worker['tokens_per_s']:.1f}",
            _share(worker.get("kv_usage")),
            f"{worker['memory_mb']:.0f}",
            f"{worker['cpu_percent']:.0f} %",
            *([_share(throttled.get(worker["incarnation"]))] if is_wide else []),
        ]
        table.add_row(*cells)
    if len(shown) < len(workers):
        table.add_row(Text(f"{len(workers) - len(shown)} more", style="dim"))
    return table


def queue_line(view: Mapping[str, Any]) -> Text:
    """What runs; who waits, by priority, and how long one would that came now."""
    line = Text(no_wrap=True, overflow="ellipsis").append("queue", style="bold")
    line.append(f"  running {view['running']:,}")
    for row in view["queue"]:
        if row["priority"] == "suspect" and not row["queued"]:
            continue
        wait_s = row["expected_wait_s"]
        known = f" (wait {duration(wait_s)})" if wait_s else ""
        style = "" if row["queued"] else "dim"
        line.append(f"   {row['priority']} {row['queued']:,}{known}", style=style)
    return line


def curves(points: Sequence[Mapping[str, Any]], now_s: float, style: Style) -> Table:
    """Of the last hour, with the newest and the highest value."""
    label_chars = 30
    num_cells = min(_MAX_CELLS, max(10, style.width - label_chars))
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True, width=num_cells, style="cyan")
    table.add_column(no_wrap=True, style="dim")
    for label, field, is_time in (
        ("tokens/s", "tokens_per_s", False),
        ("TTFT p50", "ttft_p50_s", True),
        ("TTFT p99", "ttft_p99_s", True),
    ):
        readings = [(point["at"], point.get(field)) for point in points]
        combine = max if is_time else fmean
        cells = over_time(
            readings, now_s=now_s, span_s=_SPAN_S, num_cells=num_cells, combine=combine
        )
        known = [value for _, value in readings if value is not None]
        say = duration if is_time else "{:,.0f}".format
        latest = readings[-1][1] if readings else None
        table.add_row(
            label,
            "-" if latest is None else say(latest),
            spark(cells, style.steps),
            f"max {say(max(known))}" if known else "",
        )
    return table


def jobs_table(
    jobs: Sequence[Mapping[str, Any]], now_s: float, style: Style, max_rows: int
) -> Table:
    """Its heading is not counted. The bars get the width that is left."""
    marks, shown = style.marks, [dict(job) for job in jobs[:max_rows]]
    timelines = [timeline_of(job, now_s) for job in shown]
    texts = [_texts(job, timeline) for job, timeline in zip(shown, timelines, strict=True)]
    headings = ("jobs", "status", "prio", "worker", "tokens", "total")
    widths = [max(map(cell_len, column)) for column in zip(headings, *texts, strict=True)]
    num_chars = min(_MAX_BAR_CHARS, max(1, style.width - sum(widths) - 2 * len(widths)))
    legend = f"{marks.queue} wait {marks.prefill} prefill {marks.decode} decode"
    table = _table(*headings[:4])
    table.add_column("tokens", justify="right", no_wrap=True)
    is_told = len(legend) <= num_chars
    table.add_column(legend if is_told else "time", no_wrap=True, width=num_chars)
    table.add_column("total", justify="right", no_wrap=True)
    for job, timeline, cells in zip(shown, timelines, texts, strict=True):
        line = coloured(bar(timeline, num_chars, marks), marks)
        name, _, priority, worker, tokens, total = (Text(cell) for cell in cells)
        table.add_row(name, status_text(job), priority, worker, tokens, line, total)
    return table


def _texts(job: dict[str, Any], timeline: Timeline) -> tuple[str, ...]:
    return (
        job["job_id"][:SHORT_ID_CHARS],
        status_text(job).plain,
        job["priority"],
        one_line(job.get("worker") or "", 10),
        tokens_text(job),
        duration(timeline.total_s),
    )


def coloured(text: str, marks: Marks) -> Text:
    styles = {marks.queue: "yellow", marks.prefill: "magenta", marks.decode: "green"}
    runs = ((mark, "".join(run)) for mark, run in groupby(text))
    return Text.assemble(*((run, styles.get(mark, "")) for mark, run in runs))


def duration(seconds: float) -> str:
    """With as many digits as matter, in at most seven characters."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in headings:
        table.add_column(heading, no_wrap=True)
    return table


def _share(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f} %"


def _cores(cores: Sequence[int]) -> str:
    if len(cores) > 2 and list(cores) == list(range(cores[0], cores[-1] + 1)):
        return f"{cores[0]}-{cores[-1]}"
    return one_line(",".join(map(str, cores)), 8)
