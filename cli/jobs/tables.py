"""Jobs as a terminal shows them: a table of many, and what is known of one. Pure."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from rich.table import Table
from rich.text import Text

from cli.job_timeline import Marks, Timeline, bar, seconds_of, timeline_of
from cli.printable import one_line, printable

Job = dict[str, Any]

#: What tells jobs of a page apart, and is enough for the other commands.
SHORT_ID_CHARS = 8
_BAR_CHARS = 24
_STYLES = {
    "queued": "yellow",
    "running": "cyan",
    "completed": "green",
    "failed": "red",
    "cancelled": "dim",
}


def jobs_table(jobs: Sequence[Job], now_s: float) -> Table:
    table = Table("job", "status", "priority", "worker", box=None, pad_edge=False)
    for heading in ("tokens", "waited", "total", "created"):
        table.add_column(heading, justify="right", no_wrap=True)
    for job in jobs:
        timeline = timeline_of(job, now_s)
        table.add_row(
            job["job_id"][:SHORT_ID_CHARS],
            status_text(job),
            job["priority"],
            Text(one_line(job.get("worker") or "", 24)),
            tokens_text(job),
            f"{timeline.queue_s:.1f} s",
            f"{timeline.total_s:.1f} s",
            _local(job["created_at"], "%m-%d %H:%M:%S"),
        )
    return table


def job_facts(job: Job, now_s: float, marks: Marks) -> Table:
    """All but its text."""
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, value in _facts(job, now_s, marks):
        facts.add_row(name, value if isinstance(value, Text) else Text(printable(value)))
    return facts


def status_text(job: Job) -> Text:
    status = str(job["status"])
    words = "cancelling" if job.get("cancelling") else status
    return Text(words, style=_STYLES.get(status, ""))


def tokens_text(job: Job) -> str:
    """Of the prompt and of the answer."""
    usage = job.get("usage") or {}
    return f"{usage.get('prompt_tokens', 0)}+{usage.get('completion_tokens', 0)}"


def _facts(job: Job, now_s: float, marks: Marks) -> list[tuple[str, str | Text]]:
    facts: list[tuple[str, str | Text]] = [("job", job["job_id"]), ("status", _status(job))]
    if job.get("error"):
        error = job["error"]
        field = f" (field {error['field']})" if error.get("field") else ""
        facts.append(("error", f"{error['code']}: {error['message']}{field}"))
    facts.append(("priority", job["priority"]))
    if job.get("worker"):
        attempts = job["attempts"]
        facts.append(("worker", job["worker"] + (f", attempt {attempts}" if attempts > 1 else "")))
    if job.get("weights"):
        facts.append(("weights", f"{job['weights']['format']} {job['weights']['fingerprint']}"))
    if job.get("user"):
        facts.append(("user", job["user"]))
    facts += [("seed", str(job["seed"])), ("tokens", _tokens(job))]
    facts += [("created", _local(job["created_at"], "%Y-%m-%d %H:%M:%S"))]
    timeline = timeline_of(job, now_s)
    facts += [("time", bar(timeline, _BAR_CHARS, marks)), ("", _phases(timeline))]
    if (job.get("timings") or {}).get("ttft_s") is not None:
        facts.append(("first token", _speed(job["timings"])))
    if job.get("webhook"):
        facts.append(("webhook", ", ".join(f"{k} {v}" for k, v in job["webhook"].items() if v)))
    return facts


def _status(job: Job) -> Text:
    text = status_text(job)
    if job.get("finish_reason") and job["finish_reason"] != job["status"]:
        text.append(f" ({job['finish_reason']})", style="")
    if job.get("position"):
        text.append(f", at place {job['position']} of its queue", style="")
    return text


def _tokens(job: Job) -> str:
    usage = job["usage"]
    cached = usage.get("cached_tokens") or 0
    known = f" ({cached} cached)" if cached else ""
    return f"{usage['prompt_tokens']} prompt{known}, {usage['completion_tokens']} output"


def _phases(timeline: Timeline) -> str:
    named = [("waited", timeline.queue_s), ("prefill", timeline.prefill_s)]
    named += [("decode", timeline.decode_s)]
    if timeline.other_s >= 0.1:
        named.append(("other", timeline.other_s))
    words = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in named)
    return f"{words}; {timeline.total_s:.2f} s in all"


def _speed(timings: dict[str, Any]) -> str:
    rate = timings.get("tokens_per_s")
    return f"after {timings['ttft_s']:.2f} s" + (f", then {rate:.1f} tokens/s" if rate else "")


def _local(iso_time: str, form: str) -> str:
    return datetime.fromtimestamp(seconds_of(iso_time)).strftime(form)
