"""Whether users wait, why, and what to do: one sentence each. Pure: the worst that is true is told.

The dashboard judges alike and in the same words (``api/dashboard/verdict.js``).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

View = Mapping[str, Any]
Point = Mapping[str, Any]

LONG_WAIT_S = 5.0
_KV_FULL = 0.95
_THROTTLED = 0.1
_FAILING = 0.05
_RECENT_POINTS = 6
_RECENT_S = 120.0


@dataclass(frozen=True, slots=True)
class Verdict:
    level: Literal["good", "busy", "bad"]
    text: str
    action: str = ""


def verdict_of(view: View, points: Sequence[Point], throttled: Mapping[str, float]) -> Verdict:
    """``points`` oldest first; ``throttled``: incarnation of a worker -> share of its CPU periods."""
    slow = _throttled(view, throttled)
    rules: tuple[Callable[[], Verdict | None], ...] = (
        lambda: _no_worker(view),
        lambda: _long_queue(view, slow),
        lambda: _failed_start(view),
        lambda: _lost(view),
        lambda: _requests_fail(view, points),
        lambda: slow,
        lambda: _kv_full(view),
        lambda: _warned(view),
        lambda: _suspects(view),
        lambda: _short_queue(view),
    )
    found = (rule() for rule in rules)
    return next((verdict for verdict in found if verdict), _all_well(view))


def _no_worker(view: View) -> Verdict | None:
    workers = view["workers"]
    if workers is None or _ready(view):
        return None
    starting = [worker for worker in workers if worker["state"] in ("loading", "waiting")]
    failures = view["failures"] or ()
    if failures and not starting:
        said = f"{failures[0]['name']} said: {failures[0]['message']}"
        action = f"Fix this on {failures[0]['host']}; the worker is started again by itself."
        return Verdict("bad", f"Users wait: no worker can start. {said}", action)
    if starting and all(worker["state"] == "waiting" for worker in starting):
        action = "Stop what holds the cores, or start fewer workers or threads."
        return Verdict("bad", "Users wait: the workers wait for free cores.", action)
    if starting:
        text = "Users wait a moment: the workers are loading the model."
        return Verdict("busy", text, "Nothing to do; this takes seconds to a minute.")
    if workers:
        states = " and ".join(dict.fromkeys(worker["state"] for worker in workers))
        text = f"Users wait: no worker is ready, all are {states}."
        return Verdict("bad", text, "Start workers, or look at why these stopped.")
    action = "Start one: mini-vllm up, or python -m worker beside this Redis."
    return Verdict("bad", "Users wait: there is no worker.", action)


def _long_queue(view: View, slow: Verdict | None) -> Verdict | None:
    num_queued, wait_s = _num_queued(view, "high", "normal"), _longest_wait_s(view)
    if not num_queued or (wait_s is not None and wait_s < LONG_WAIT_S):
        return None
    jobs = f"{_plural(num_queued, 'job')} in the queue"
    if wait_s is None:
        text = f"Users wait: {jobs}, for how long is not known yet."
        return Verdict("busy", text, "Look again in a few seconds.")
    used, slots = _sum(_ready(view), "slots_used"), _sum(_ready(view), "slots")
    why = (
        f": all {slots} slots are used"
        if used >= slots
        else f" while {used} of {slots} slots are used"
    )
    if view["workers"] is None:
        why, action = "", "Ask for less at once, or send what is not urgent with low priority."
    else:
        action = "Add workers or cores, or send what is not urgent with low priority."
    cause = _failed_start(view) or slow
    if cause:
        action = f"{cause.text} {cause.action}"
    return Verdict("bad", f"Users wait about {_about(wait_s)}: {jobs}{why}.", action)


def _failed_start(view: View) -> Verdict | None:
    failures = view["failures"]
    if not failures:
        return None
    message = str(failures[0]["message"]).rstrip(".")
    text = f"{failures[0]['name']} fails to start: {message}."
    return Verdict("busy", text, f"Fix this on {failures[0]['host']}.")


def _lost(view: View) -> Verdict | None:
    gone = [worker["name"] for worker in view["workers"] or () if worker["state"] == "lost"]
    if not gone:
        return None
    verb = "answers" if len(gone) == 1 else "answer"
    text = f"{', '.join(gone)} no longer {verb}; the jobs go on elsewhere."
    action = "If this lasts, look at the worker's log and its machine's memory."
    return Verdict("busy", text, action)


def _requests_fail(view: View, points: Sequence[Point]) -> Verdict | None:
    recent = [p for p in points[-_RECENT_POINTS:] if view["at"] - p["at"] < _RECENT_S]
    ended, errors = _sum(recent, "requests_per_s"), _sum(recent, "errors_per_s")
    if not errors or errors < ended * _FAILING:
        return None
    share = _percent(errors / ended) if ended else "all"
    text = f"Of the requests that ended in the last minute, {share} failed."
    action = "What they died of: mini-vllm jobs list --status failed, and jobs show ID."
    return Verdict("busy", text, action)


def _throttled(view: View, throttled: Mapping[str, float]) -> Verdict | None:
    held = [w for w in _ready(view) if throttled.get(w["incarnation"], 0.0) > _THROTTLED]
    if not held:
        return None
    worst = max(held, key=lambda worker: throttled[worker["incarnation"]])
    share = _percent(throttled[worst["incarnation"]])
    text = "Answers come slower than they could: the CPU quota holds"
    text += f" {worst['name']} back ({share} of the time)."
    action = "Raise the container's CPU limit, or give the worker fewer threads."
    return Verdict("busy", text, action)


def _kv_full(view: View) -> Verdict | None:
    full = [w for w in _ready(view) if (w.get("kv_usage") or 0) >= _KV_FULL]
    if not full:
        return None
    share = _percent(full[0]["kv_usage"])
    text = f"The KV cache of {full[0]['name']} is {share} full: answers may end for lack of room."
    action = "Shorten prompts, or raise MINI_VLLM_CONTEXT_TOKENS where there is memory."
    return Verdict("busy", text, action)


def _warned(view: View) -> Verdict | None:
    warnings = view["warnings"]
    return Verdict("busy", f"Nobody waits, but: {warnings[0]}") if warnings else None


def _suspects(view: View) -> Verdict | None:
    num_suspects = _num_queued(view, "suspect")
    if not num_suspects:
        return None
    text = f"{_plural(num_suspects, 'job')} that workers died of: run alone, one at a time."
    return Verdict("busy", text, "If workers die of them again, those jobs fail with worker_lost.")


def _short_queue(view: View) -> Verdict | None:
    num_queued, num_low = _num_queued(view, "high", "normal"), _num_queued(view, "low")
    if num_queued:
        wait = _about(_longest_wait_s(view) or 0.0)
        text = f"Nobody waits long: {_plural(num_queued, 'job')} in the queue, about {wait}."
        return Verdict("good", text, "Nothing to do.")
    if num_low:
        text = f"All is well: nobody waits but {_plural(num_low, 'job')} of low priority."
        return Verdict("good", text)
    return None


def _all_well(view: View) -> Verdict:
    ready = _ready(view)
    if view["workers"] is None:
        return Verdict("good", "All is well: nobody waits.")
    slots = f"{_sum(ready, 'slots_used')} of {_plural(_sum(ready, 'slots'), 'slot')} used"
    text = f"All is well: nobody waits. {_plural(len(ready), 'worker')} ready, {slots}."
    return Verdict("good", text)


def _ready(view: View) -> list[Any]:
    return [worker for worker in view["workers"] or () if worker["state"] == "ready"]


def _num_queued(view: View, *priorities: str) -> int:
    return sum(row["queued"] for row in view["queue"] if row["priority"] in priorities)


def _longest_wait_s(view: View) -> float | None:
    """Of the priorities that users wait in; ``None`` if one of them is not known."""
    rows = [row for row in view["queue"] if row["priority"] in ("high", "normal") and row["queued"]]
    waits_s = [row["expected_wait_s"] for row in rows]
    return None if None in waits_s else max(waits_s, default=0.0)


def _sum(rows: Sequence[Any], field: str) -> Any:
    return sum(row.get(field) or 0 for row in rows)


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number:,} {noun}s"


def _percent(share: float) -> str:
    return f"{round(100 * share)} %"


def _about(seconds: float) -> str:
    return f"{round(seconds)} s" if seconds < 120 else f"{round(seconds / 60)} minutes"
