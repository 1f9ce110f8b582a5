"""Where the time of a job went: waiting, its prompt, its tokens; and that as a bar of characters. Pure."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Timeline:
    """``other_s`` of a job that ended: attempts that were lost, and what is between the phases."""

    queue_s: float
    prefill_s: float = 0.0
    decode_s: float = 0.0
    other_s: float = 0.0

    @property
    def total_s(self) -> float:
        return self.queue_s + self.prefill_s + self.decode_s + self.other_s


@dataclass(frozen=True, slots=True)
class Marks:
    """A character for each phase, so that a bar needs no colour."""

    queue: str = "·"
    prefill: str = "▒"
    decode: str = "█"
    other: str = "-"


_ASCII_MARKS = Marks(queue=".", prefill="+", decode="#")


def marks_for(encoding: str) -> Marks:
    return Marks() if encoding.lower().startswith("utf") else _ASCII_MARKS


def timeline_of(job: dict[str, Any], now_s: float) -> Timeline:
    """``job`` as ``GET /jobs`` has it; ``now_s`` by the service's clock, for one that has not ended."""
    timings = job.get("timings") or {}
    queued_s = timings.get("queued_s")
    if job.get("ended_at") or timings.get("total_s") is not None:
        prefill_s, decode_s = timings.get("prefill_s") or 0.0, timings.get("decode_s") or 0.0
        known_s = (queued_s or 0.0) + prefill_s + decode_s
        total_s = timings.get("total_s")
        if queued_s is None and total_s is not None:  # it ended before it began
            return Timeline(total_s)
        return Timeline(queued_s or 0.0, prefill_s, decode_s, max(0.0, (total_s or 0.0) - known_s))
    age_s = max(0.0, now_s - seconds_of(job["created_at"]))
    if job["status"] == "queued" or queued_s is None:
        return Timeline(age_s)
    ttft_s = timings.get("ttft_s")
    if ttft_s is None:
        return Timeline(queued_s, max(0.0, age_s - queued_s))
    return Timeline(queued_s, max(0.0, ttft_s - queued_s), max(0.0, age_s - ttft_s))


def seconds_of(iso_time: str) -> float:
    return datetime.fromisoformat(iso_time).timestamp()


def bar(timeline: Timeline, num_chars: int, marks: Marks) -> str:
    """Exactly so long, each phase by its share; empty for a job that has taken no time yet."""
    if timeline.total_s <= 0:
        return " " * num_chars
    phases = (
        (timeline.queue_s, marks.queue),
        (timeline.prefill_s, marks.prefill),
        (timeline.decode_s, marks.decode),
        (timeline.other_s, marks.other),
    )
    text, until_s = "", 0.0
    for seconds, mark in phases:
        until_s += seconds
        text += mark * (round(num_chars * until_s / timeline.total_s) - len(text))
    return text
