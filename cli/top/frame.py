"""A picture of the service as a terminal of some size shows it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from cli.durations import duration_text
from cli.printable import one_line
from cli.top.picture import Picture
from cli.top.sections import Style, curves, jobs_table, queue_line, workers_table
from cli.top.verdict import Verdict, verdict_of

_STYLES = {"good": "bold green", "busy": "bold yellow", "bad": "bold red"}
#: A sentence longer than that is cut.
_MAX_LINES = 2
#: Title, queue, three curves, headings of workers and jobs, and three blank lines.
_FIXED_LINES = 10
_MIN_WORKERS, _MIN_JOBS = 2, 4


@dataclass(frozen=True, slots=True)
class Screen:
    """Where it is shown."""

    url: str
    height: int
    style: Style


def frame(picture: Picture, screen: Screen, now_s: float) -> RenderableType:
    """``now_s`` by the clock of who looks."""
    view = picture.view
    assert view is not None, "there is something to show"
    width = screen.style.width
    verdict = headline(picture, now_s)
    sentences = [*_lines(verdict.text, width, _STYLES[verdict.level])]
    sentences += _lines(f"-> {verdict.action}", width, "") if verdict.action else []
    num_workers, num_jobs = share_rows(screen.height - _FIXED_LINES - len(sentences), view)
    age_s = max(0.0, now_s - picture.heard_s)
    service_now_s = view["at"] + (0.0 if picture.problem else age_s)
    return Group(
        _title(view, screen.url, width),
        *sentences,
        "",
        workers_table(view, picture.throttled, screen.style, num_workers),
        queue_line(view),
        "",
        curves(picture.points or (), service_now_s, screen.style),
        "",
        jobs_table(view["jobs"], service_now_s, screen.style, num_jobs),
    )


def headline(picture: Picture, now_s: float) -> Verdict:
    """What is to be known first: where the service does not answer, that."""
    assert picture.view is not None, "there is something to show"
    if picture.problem:
        age = duration_text(max(0.0, now_s - picture.heard_s))
        text = f"Reconnecting; what is below was so {age} ago."
        return Verdict("bad", text, picture.problem)
    return verdict_of(picture.view, picture.points or (), picture.throttled)


def share_rows(num_rows: int, view: Mapping[str, Any]) -> tuple[int, int]:
    """For workers, and for jobs, which get what is left."""
    wanted = 0 if view["workers"] is None else len(view["workers"])
    num_workers = min(wanted, max(_MIN_WORKERS, num_rows - _MIN_JOBS))
    return num_workers, max(1, num_rows - num_workers)


def _title(view: Mapping[str, Any], url: str, width: int) -> Text:
    at = datetime.fromtimestamp(view["at"]).strftime("%H:%M:%S")
    whose = "" if view["scope"] == "all" else "  (jobs of this key)"
    return Text(one_line(f"mini-vllm top  {url}  {view['model']}  {at}{whose}", width), style="dim")


def _lines(sentence: str, width: int, style: str) -> list[Text]:
    """Wrapped, and cut where it is too long."""
    from rich.console import Console

    text = Text(one_line(sentence, _MAX_LINES * (width - 4)), style=style)
    return list(text.wrap(Console(width=width), width))
