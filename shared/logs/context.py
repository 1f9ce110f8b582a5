"""What log lines are about: fields of one line, and of all lines that are made meanwhile.

The context follows into tasks and into threads that are given it, as the gateway's are.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

Fields = Mapping[str, Any]

_fields: ContextVar[dict[str, Any] | None] = ContextVar("log_fields", default=None)


def about(**fields: Any) -> dict[str, Any]:
    """``extra`` of a log call; what is ``None`` is not known, and left out."""
    return {"fields": {name: value for name, value in fields.items() if value is not None}}


@contextmanager
def concerning(**fields: Any) -> Iterator[dict[str, Any]]:
    """All lines inside have these fields, and those that are noted inside."""
    token = _fields.set((_fields.get() or {}) | about(**fields)["fields"])
    try:
        yield _fields.get() or {}
    finally:
        _fields.reset(token)


def note(**fields: Any) -> None:
    """From here on, for the innermost ``concerning``, also in what called this; none: nothing to do."""
    known = _fields.get()
    if known is not None:
        known.update(about(**fields)["fields"])


def note_job(job_id: str) -> None:
    """Like ``note``; several are ``jobs``: a call may make some."""
    known = _fields.get()
    if known is None or job_id in (known.get("job"), *known.get("jobs", ())):
        return
    if "jobs" in known:
        known["jobs"] = [*known["jobs"], job_id]
    elif "job" in known:
        known["jobs"] = [known.pop("job"), job_id]
    else:
        known["job"] = job_id


def current_fields() -> Fields:
    return _fields.get() or {}
